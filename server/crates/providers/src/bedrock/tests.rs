use super::{AwsAuth, Bedrock, path_step, signed};
use aws_credential_types::Credentials;
use bytes::Bytes;
use http::header;
use std::time::{Duration, SystemTime};
use switchyard_core::secret::Secret;

const ARN: &str = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-4-6-v1";

#[test]
fn a_models_id_is_one_step_of_the_path() {
    assert_eq!(
        path_step("anthropic.claude-3-haiku-20240307-v1:0"),
        "anthropic.claude-3-haiku-20240307-v1%3A0"
    );
    assert!(path_step(ARN).ends_with("inference-profile%2Fus.anthropic.claude-opus-4-6-v1"));
    assert_eq!(path_step("a b/ü?#"), "a%20b%2F%C3%BC%3F%23");
}

fn keys(token: Option<&str>) -> AwsAuth {
    AwsAuth::Keys {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned()),
        session_token: token.map(|token| Secret::new(token.to_owned())),
    }
}

fn signed_request(token: Option<&str>, body: &'static [u8], seconds: u64) -> http::Request<Bytes> {
    let headers = [("x-amzn-bedrock-guardrailidentifier".to_owned(), "g1".to_owned())];
    let wire = Bedrock::new("https://proxy.example/aws/", "eu-west-1", keys(token), &headers).unwrap();
    let address = format!("{}/model/{}/converse", wire.base_url, path_step(ARN));
    let mut request = http::Request::post(address).body(Bytes::from_static(body)).unwrap();
    *request.headers_mut() = wire.headers_for_answers.clone();
    wire.sign(&mut request, SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        .unwrap();
    request
}

#[test]
fn every_request_is_signed_over_what_is_sent() {
    let request = signed_request(Some("token"), b"{}", 1_440_938_160);
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let signature = header("authorization").unwrap();
    let want = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, SignedHeaders=accept;\
                content-type;host;x-amz-date;x-amz-security-token;x-amzn-bedrock-guardrailidentifier, Signature=";
    assert!(signature.starts_with(want), "{signature}");
    assert_eq!(header("x-amz-date"), Some("20150830T123600Z"));
    assert_eq!(header("x-amz-security-token"), Some("token"));
    for other in [
        signed_request(Some("other"), b"{}", 1_440_938_160),
        signed_request(Some("token"), b"{ }", 1_440_938_160),
        signed_request(Some("token"), b"{}", 1_440_938_161),
        signed_request(None, b"{}", 1_440_938_160),
    ] {
        assert_ne!(
            other.headers().get(header::AUTHORIZATION).unwrap().to_str().unwrap(),
            signature
        );
    }
    let again = signed_request(Some("token"), b"{}", 1_440_938_160);
    assert_eq!(again.headers(), request.headers());
}

/// The signature of a step of a path that has escapes in it is that of the path escaped once more, as AWS says it is for all
/// services but S3.
#[test]
fn escapes_in_the_path_are_escaped_again_to_be_signed() {
    let sign = |address: &str| {
        let request = http::Request::post(address).body(Bytes::new()).unwrap();
        let credentials = Credentials::new("A", "B", None, None, "test");
        let instructions = signed(&request, "us-east-1", &credentials, SystemTime::UNIX_EPOCH).unwrap();
        instructions
            .headers()
            .find(|(name, _)| *name == "authorization")
            .unwrap()
            .1
            .to_owned()
    };
    let colon = sign("https://h/model/a%3A0/converse");
    assert_ne!(colon, sign("https://h/model/a:0/converse"));
    assert_ne!(colon, sign("https://h/model/a%253A0/converse"));
}

#[test]
fn a_key_is_sent_as_it_is_and_nothing_is_signed() {
    let secret = Secret::new("bedrock-api-key-1".to_owned());
    let wire = Bedrock::new("", "us-west-2", AwsAuth::Bearer(secret), &[]).unwrap();
    assert_eq!(wire.base_url, "https://bedrock-runtime.us-west-2.amazonaws.com");
    let mut request = http::Request::post("https://h/").body(Bytes::new()).unwrap();
    *request.headers_mut() = wire.headers_for_streams.clone();
    wire.sign(&mut request, SystemTime::UNIX_EPOCH).unwrap();
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("authorization"), Some("Bearer bedrock-api-key-1"));
    assert_eq!(header("accept"), Some("application/vnd.amazon.eventstream"));
    assert_eq!(header("x-amz-date"), None);
}

#[test]
fn what_no_header_may_hold_is_refused_at_the_start() {
    assert!(Bedrock::new("", "r", keys(Some("a\nb")), &[]).is_err());
    assert!(Bedrock::new("", "r", AwsAuth::Bearer(Secret::new("a\nb".to_owned())), &[]).is_err());
    let bad = AwsAuth::Keys {
        access_key_id: "a\nb".to_owned(),
        secret_access_key: Secret::new("x".to_owned()),
        session_token: None,
    };
    assert!(Bedrock::new("", "r", bad, &[]).is_err());
    assert!(Bedrock::new("", "r", AwsAuth::None, &[("a b".to_owned(), String::new())]).is_err());
}
