import openai

from stack import UPSTREAM_KEY
from support import HELLO, Case, error


class Errors(Case):
    def refused(self, kind, client=None, **more):
        with self.assertRaises(kind) as caught:
            (client or self.client).chat.completions.create(model=self.model, messages=HELLO, **more)
        return caught.exception

    def test_a_key_that_is_not_valid(self):
        refused = self.refused(openai.AuthenticationError, self.client_of(self.gateway, "sy_" + "A" * 43))
        self.assertEqual((refused.status_code, refused.code), (401, "invalid_api_key"))
        self.assertEqual(refused.type, "authentication_error")
        self.assertEqual(self.seen(), [])

    def test_a_key_that_may_only_read(self):
        key = self.gateway.create_key("reader", ["read_only"])
        refused = self.refused(openai.PermissionDeniedError, self.client_of(self.gateway, key))
        self.assertEqual((refused.status_code, refused.code), (403, "insufficient_scope"))
        self.assertEqual(self.seen(), [])

    def test_a_bad_request_names_the_field(self):
        self.script(error(400, "Must be at most 2", code="invalid_value", param="temperature"))
        refused = self.refused(openai.BadRequestError, temperature=9)
        self.assertEqual((refused.param, refused.type), ("temperature", "invalid_request_error"))
        self.assertIn("Must be at most 2", refused.message)

    def test_a_prompt_that_is_too_long(self):
        self.script(error(400, "This model's maximum context length is 8 tokens", code="context_length_exceeded"))
        refused = self.refused(openai.BadRequestError)
        self.assertEqual(refused.code, "context_length_exceeded")

    def test_a_rate_limit_says_how_long_to_wait(self):
        self.script(error(429, "Slow down", code="rate_limit_exceeded", retry_after="7"))
        refused = self.refused(openai.RateLimitError)
        self.assertEqual(refused.response.headers["retry-after"], "7")
        self.assertEqual(refused.code, "rate_limit_exceeded")

    def test_the_gateways_own_credential_is_no_fault_of_the_caller(self):
        self.script(error(401, f"Incorrect API key provided: {UPSTREAM_KEY}", code="invalid_api_key"))
        refused = self.refused(openai.InternalServerError)
        self.assertEqual((refused.status_code, refused.code), (502, "upstream_auth_error"))
        self.assertNotIn(UPSTREAM_KEY, refused.response.text)
        row = self.gateway.log(refused.response.headers["x-request-id"])
        self.assertNotIn(UPSTREAM_KEY, str(row))

    def test_a_failed_upstream_is_a_bad_gateway(self):
        self.script(error(500, "The mock is out of order"))
        refused = self.refused(openai.InternalServerError)
        self.assertEqual((refused.status_code, refused.code), (502, "upstream_error"))

    def test_the_sdk_tries_again_by_itself(self):
        self.script(error(503, "Come back", retry_after="0"), {"kind": "chat", "text": "Better now."})
        client = self.client.with_options(max_retries=1)
        answer = client.chat.completions.create(model=self.model, messages=HELLO)
        self.assertEqual(answer.choices[0].message.content, "Better now.")

    def test_an_error_instead_of_a_stream(self):
        self.script(error(400, "No streams today"))
        self.assertIn("No streams today", self.refused(openai.BadRequestError, stream=True).message)
