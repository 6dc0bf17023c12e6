//! `cargo xtask dev`: serve, and follow the sources.
//!
//! It looks at modification times twice a second, which costs nothing for a few hundred files and works on every file
//! system. A debug server reads the dashboard from disk, so that a change of style alone needs no restart.

use crate::{
    build::{self, Profile},
    project::{Project, files},
    web::{self, Mode},
};
use anyhow::{Context as _, Result};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

const WATCHED: [&str; 6] = ["app", "frontend", "migrations", "server", "style", "Cargo.toml"];
const POLL: Duration = Duration::from_millis(500);
/// How long a server may take to finish what it is doing.
const GRACE: Duration = Duration::from_secs(10);

type Snapshot = BTreeMap<PathBuf, SystemTime>;

pub(crate) fn dev(project: &Project, args: &[OsString]) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;

    let mut server = Server {
        project,
        args,
        child: None,
    };
    let mut seen = snapshot(project);
    rebuild(project, &mut server, false);
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(POLL);
        server.notice_its_end();
        let now = settled(project, &seen);
        if now != seen {
            let style_only = changed(&seen, &now).all(|path| path.starts_with(project.path("style")));
            seen = now;
            rebuild(project, &mut server, style_only);
        }
    }
    server.stop()
}

/// A mistake in the sources is printed; the server that runs goes on until the next change that builds.
fn rebuild(project: &Project, server: &mut Server<'_>, style_only: bool) {
    let built = web::build(project, Mode::Quick).and_then(|()| {
        if style_only {
            println!("==> new style: reload the page");
            return Ok(());
        }
        build::server(project, Profile::Debug)?;
        server.restart()
    });
    if let Err(error) = built {
        println!("==> {error:#}; waiting for a change");
    }
}

// === The sources ===

fn snapshot(project: &Project) -> Snapshot {
    let paths = WATCHED
        .iter()
        .filter_map(|path| files(&project.path(path)).ok())
        .flatten();
    let paths = paths.filter(|path| !is_an_editors(path));
    paths
        .filter_map(|path| Some((path.clone(), path.metadata().ok()?.modified().ok()?)))
        .collect()
}

fn is_an_editors(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.starts_with('.') || name.ends_with('~')
    })
}

/// The sources, once they have stopped changing: an editor or git writes many files in a row.
fn settled(project: &Project, seen: &Snapshot) -> Snapshot {
    let mut last = snapshot(project);
    while last != *seen {
        thread::sleep(POLL);
        let now = snapshot(project);
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// What came, went, or was written.
fn changed<'a>(old: &'a Snapshot, new: &'a Snapshot) -> impl Iterator<Item = &'a PathBuf> {
    let gone = old.keys().filter(|path| !new.contains_key(*path));
    gone.chain(
        new.iter()
            .filter(|(path, time)| old.get(*path) != Some(*time))
            .map(|(path, _)| path),
    )
}

// === The server ===

struct Server<'a> {
    project: &'a Project,
    args: &'a [OsString],
    child: Option<Child>,
}

impl Server<'_> {
    fn restart(&mut self) -> Result<()> {
        self.stop()?;
        let binary = Profile::Debug.binary(self.project);
        println!("==> {}", binary.display());
        let child = Command::new(&binary).args(self.args).spawn();
        self.child = Some(child.with_context(|| format!("cannot start {}", binary.display()))?);
        Ok(())
    }

    /// Asks it to end, as an operator would, and waits.
    fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        // The standard library can only kill.
        Command::new("sh")
            .args(["-c", "kill \"$0\" 2>/dev/null", &child.id().to_string()])
            .status()?;
        for _ in 0..GRACE.as_millis() / POLL.as_millis() {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        println!("==> the server does not end: killing it");
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    fn notice_its_end(&mut self) {
        let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        if let Some(status) = ended {
            println!("==> the server ended ({status}); waiting for a change");
            self.child = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Snapshot, changed};
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_change_is_a_file_that_came_went_or_was_written() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let old = Snapshot::from([
            ("gone".into(), at(1)),
            ("kept".into(), at(1)),
            ("written".into(), at(1)),
        ]);
        let new = Snapshot::from([
            ("came".into(), at(2)),
            ("kept".into(), at(1)),
            ("written".into(), at(2)),
        ]);
        let mut names: Vec<_> = changed(&old, &new).map(|path| path.display().to_string()).collect();
        names.sort();
        assert_eq!(names, ["came", "gone", "written"]);
    }
}
