//! `pass_through`.

use super::{check, parse};
use crate::config::PassThrough;
use expect_test::expect;

#[test]
fn what_is_passed_on_is_all_nothing_or_what_is_listed() {
    let read = |value: &str| parse(&format!("targets: [demo]\n{value}\n")).pass_through;
    for all in ["", "pass_through:", "pass_through: all", "pass_through: true"] {
        assert_eq!(read(all), PassThrough::All, "{all}");
    }
    for off in ["pass_through: off", "pass_through: \"off\"", "pass_through: false"] {
        assert_eq!(read(off), PassThrough::Only(Vec::new()), "{off}");
    }
    let listed = read("pass_through: [/v1/fine_tuning/, /v1/audio/voices]");
    for (path, allowed) in [
        ("/v1/fine_tuning", true),
        ("/v1/fine_tuning/jobs/ft-1", true),
        ("/v1/audio/voices", true),
        ("/v1/audio", false),
        ("/v1/audio/voicesx", false),
        ("/v1/fine_tunings", false),
        ("/v1/files", false),
        ("/v1/fine%5Ftuning", false),
        ("/V1/fine_tuning", false),
    ] {
        assert_eq!(listed.allows(path), allowed, "{path}");
        assert!(PassThrough::All.allows(path));
        assert!(!read("pass_through: off").allows(path));
    }
}

#[test]
fn what_makes_no_sense_there_says_so() {
    check(
        "targets: [demo]\npass_through: some\n",
        expect![[r#"
            line 2: pass_through: must be all, off, or a list of paths such as /v1/fine_tuning, not "some"
        "#]],
    );
    check(
        "targets: [demo]\npass_through: {files: off}\n",
        expect![[r#"
            line 2: pass_through: must be all, off, or a list of paths such as /v1/fine_tuning, not a block of keys
        "#]],
    );
    check(
        "targets: [demo]\npass_through: []\n",
        expect![[r#"
            line 2: pass_through: lists nothing; write off to pass nothing on
        "#]],
    );
    check(
        "\
targets: [demo]
pass_through:
  - /v1/files/*
  - files
  - /v1
  - /v1/a/../b
  - {path: /v1/files}
  - /v1/files?purpose=batch
",
        expect![[r#"
            line 3: pass_through[0]: "/v1/files/*" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so there are no wildcards
            line 4: pass_through[1]: "files" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so there are no wildcards
            line 5: pass_through[2]: "/v1" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so there are no wildcards
            line 6: pass_through[3]: "/v1/a/../b" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so there are no wildcards
            line 7: pass_through[4]: must be a text, not a block of keys
            line 8: pass_through[5]: "/v1/files?purpose=batch" is no path below /v1, such as /v1/fine_tuning; what is below a path is listed with it, so there are no wildcards
        "#]],
    );
}

#[test]
fn whoever_keeps_projects_apart_is_told() {
    check(
        "targets: [demo]\nprojects: {shop: {only: [demo]}}\n",
        expect![[r#"
            default: single demo
            project shop: None Some(["demo"])
            line 2: projects: calls that are passed on run in the name of the gateway's account: a key of one project can list and delete what another's has there, such as files; say with pass_through what is passed on
        "#]],
    );
    check(
        "targets: [demo]\nprojects: {shop: {only: [demo]}}\npass_through: all\n",
        expect![[r#"
            default: single demo
            project shop: None Some(["demo"])
        "#]],
    );
}
