//! `providers`.

use super::{check, parse};
use crate::config::{Credential, Price, ProviderKind};
use crate::env::Template;
use expect_test::expect;

#[test]
fn a_literal_key_works_and_warns_and_a_reference_does_not() {
    check(
        "providers:\n  - {id: near, kind: openai, base_url: http://127.0.0.1:9/v1, api_key: sk-clear, models: [m]}\n  - {id: far, kind: openai, base_url: 'https://x.test/v1', api_key: '${KEY}'}\n  - id: many\n    kind: demo\n    credentials:\n      - {id: a, api_key: sk-clear}\n      - {id: b, api_key: '${KEY}'}\nstrategy: {mode: fallback}\ntargets: [{virtual_key: near}, {virtual_key: far}]\n",
        expect![[r#"
            default: fallback near far
            line 2: providers[0].api_key: stands in the file in clear; write `${NAME}` and set that variable
            line 7: providers[2].credentials[0].api_key: stands in the file in clear; write `${NAME}` and set that variable
        "#]],
    );
}

#[test]
fn providers_are_checked() {
    check(
        "providers:\n  - {id: 'a b', kind: openai, base_url: 'ftp://x'}\n  - id: b\n    kind: cohere\n    base_url: 'https://x/v1?k=1'\n  - {id: c, kind: openai}\n  - {id: c, kind: demo, models: ['gpt-*', ' m', m, m]}\n  - {id: d, kind: openai, base_url: 'http://x', headers: {'x y': 1}}\n  - {}\n  - {id: e, kind: openai, base_url: '${URL}', api_keys: x}\ntargets: [{virtual_key: c}]\n",
        expect![[r#"
            line 2: providers[0].id: is required: letters, digits, "-", "_" and "."
            line 2: providers[0].base_url: must be an http:// or https:// address, such as "https://api.openai.com/v1"
            line 5: providers[1].base_url: must not have a query or a fragment
            line 6: providers[2].base_url: is required, for example "https://api.openai.com/v1"
            line 7: providers[3].models[0]: "gpt-*" has a wildcard; write each model id in full
            line 7: providers[3].models[1]: must be a model id without spaces around it
            line 7: providers[3].models[3]: "m" is listed twice; keep one of them
            line 7: providers[3].id: "c" is a provider already; give this one another id
            line 8: providers[4].headers.x y: is not a header name: letters, digits, "-" and "_"
            line 9: providers[5].id: is required: letters, digits, "-", "_" and "."
            line 9: providers[5].kind: is required; use openai, anthropic, gemini, bedrock, cohere: the wire that it speaks
            line 10: providers[6].api_keys: is not a key of this block; did you mean "api_key"?
        "#]],
    );
}

#[test]
fn credentials_are_told_apart() {
    check(
        "\
targets: [demo]
providers:
  - id: p
    kind: demo
    credentials:
      - {id: a, api_key: '${A}'}
      - {id: a, api_key: '${B}', weight: 0}
      - {api_key: '${C}', weight: -1}
      - {id: c}
      - {id: d, api_key: [x]}
      - {id: e, api_key: '${E}', share: 1}
  - id: q
    kind: demo
    api_key: '${A}'
    credentials: [{id: a, api_key: '${A}'}]
  - {id: r, kind: demo, credentials: []}
  - {id: s, kind: demo, credentials: '${A}'}
",
        expect![[r#"
            line 7: providers[0].credentials[1].id: "a" is another credential's id; give each its own
            line 7: providers[0].credentials[1].weight: must be more than 0; to retire a credential, take it out
            line 8: providers[0].credentials[2].id: is required: a name to tell it from its siblings
            line 8: providers[0].credentials[2].weight: must be at least 0, not -1
            line 9: providers[0].credentials[3].api_key: is required, for example "${OPENAI_API_KEY_2}"
            line 10: providers[0].credentials[4].api_key: must be a text, not a list
            line 11: providers[0].credentials[5].share: is not a key of this block; known here: id, api_key, weight
            line 15: providers[1].credentials: stands beside `api_key`; keep one of them
            line 16: providers[2].credentials: holds none; leave it out to call the upstream without a credential
            line 17: providers[3].credentials: must be a list, not a text
        "#]],
    );
}

#[test]
fn prices_are_whole() {
    check(
        "\
targets: [demo]
providers:
  - id: p
    kind: demo
    prices:
      a: {input_per_m: 1}
      b: {input_per_m: -1, output_per_m: x}
      c: 3
      d: {}
      e: {input_per_m: 1, output_per_m: 2, cached: 1}
  - {id: q, kind: demo, prices: [a]}
",
        expect![[r#"
            line 6: providers[0].prices.a.output_per_m: is required: USD per million tokens
            line 7: providers[0].prices.b.input_per_m: must be at least 0, not -1
            line 7: providers[0].prices.b.output_per_m: must be a number, not a text
            line 8: providers[0].prices.c: must be a block of keys, not a number
            line 9: providers[0].prices.d.input_per_m: is required: USD per million tokens
            line 9: providers[0].prices.d.output_per_m: is required: USD per million tokens
            line 10: providers[0].prices.e.cached: is not a key of this block; known here: input_per_m, output_per_m
            line 11: providers[1].prices: must be a block of keys, not a list
        "#]],
    );
}

#[test]
fn a_provider_is_read_whole() {
    let config = parse(
        "\
targets: [near]
providers:
  - id: near
    kind: openai
    base_url: 'http://127.0.0.1:9/v1'
    credentials: [{id: a, api_key: '${A}'}, {id: b, api_key: '${B}', weight: 2.5}]
    models: [m]
    headers: {X-Tenant: '${T}'}
    catalog: groq
    prices: {m: {input_per_m: 1, output_per_m: 2.5}}
  - {id: plain, kind: demo, api_key: '${A}'}
",
    );
    let near = &config.providers[0];
    let credential = |id: &str, key: &str, weight| Credential {
        id: id.to_owned(),
        api_key: Template::new(key),
        weight,
    };
    assert_eq!(near.kind, ProviderKind::OpenAi);
    assert_eq!(near.base_url, Some(Template::new("http://127.0.0.1:9/v1")));
    assert_eq!(
        near.credentials,
        [credential("a", "${A}", 1.0), credential("b", "${B}", 2.5)]
    );
    assert_eq!(near.models, ["m"]);
    assert_eq!(near.headers, [("X-Tenant".to_owned(), Template::new("${T}"))]);
    assert_eq!(near.catalog, "groq");
    let price = Price {
        input_per_m: 1.0,
        output_per_m: 2.5,
    };
    assert_eq!(near.prices["m"], price);
    let plain = &config.providers[1];
    assert_eq!(plain.credentials, [Credential::only(Template::new("${A}"))]);
    assert_eq!((plain.catalog.as_str(), plain.prices.len()), ("plain", 0));
}

#[test]
fn shares_of_credentials_have_a_finite_sum() {
    check(
        "\
targets: [demo]
providers:
  - id: p
    kind: demo
    credentials:
      - {id: a, api_key: '${A}', weight: 1.0e+308}
      - {id: b, api_key: '${B}', weight: 1000000001}
      - {id: c, api_key: '${C}', weight: 1000000000}
",
        expect![[r#"
            line 6: providers[0].credentials[0].weight: must be at most 1000000000; weights count only relative to each other
            line 7: providers[0].credentials[1].weight: must be at most 1000000000; weights count only relative to each other
        "#]],
    );
}

#[test]
fn a_key_is_not_empty() {
    check(
        "\
targets: [demo]
providers:
  - {id: p, kind: demo, api_key: \"\"}
  - id: q
    kind: demo
    credentials:
      - {id: a, api_key: ''}
      - {id: b, api_key: ' '}
      - {id: c, api_key: '${C}'}
  - {id: r, kind: demo, api_key: }
",
        expect![[r#"
            line 3: providers[0].api_key: must not be empty; leave it out to call the upstream without a credential
            line 7: providers[1].credentials[0].api_key: must not be empty; write a reference, such as "${OPENAI_API_KEY_2}", or take the credential out
            line 8: providers[1].credentials[1].api_key: must not be empty; write a reference, such as "${OPENAI_API_KEY_2}", or take the credential out
        "#]],
    );
    let config = parse("targets: [demo]\nproviders: [{id: r, kind: demo, api_key: }]\n");
    assert_eq!(config.providers[0].credentials, []);
}

#[test]
fn headers_of_the_connection_are_the_clients() {
    check(
        "\
targets: [demo]
providers:
  - id: p
    kind: demo
    headers:
      Content-Length: 1
      transfer-encoding: chunked
      connection: close
      HOST: x
      te: trailers
      trailer: x
      upgrade: h2c
      keep-alive: timeout=5
      expect: 100-continue
      X-Tenant: x
",
        expect![[r#"
            line 6: providers[0].headers.Content-Length: is set by the client library with every call; remove it
            line 7: providers[0].headers.transfer-encoding: is set by the client library with every call; remove it
            line 8: providers[0].headers.connection: is set by the client library with every call; remove it
            line 9: providers[0].headers.HOST: is set by the client library with every call; remove it
            line 10: providers[0].headers.te: is set by the client library with every call; remove it
            line 11: providers[0].headers.trailer: is set by the client library with every call; remove it
            line 12: providers[0].headers.upgrade: is set by the client library with every call; remove it
            line 13: providers[0].headers.keep-alive: is set by the client library with every call; remove it
            line 14: providers[0].headers.expect: is set by the client library with every call; remove it
        "#]],
    );
    let config = parse("targets: [demo]\nproviders: [{id: p, kind: demo, headers: {Proxy-Authorization: '${P}'}}]\n");
    let headers = [("Proxy-Authorization".to_owned(), Template::new("${P}"))];
    assert_eq!(config.providers[0].headers, headers);
}
