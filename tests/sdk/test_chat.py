import openai

from support import HELLO, Case, chat, raw


class Chat(Case):
    def test_an_answer_in_one_piece(self):
        self.script(chat("one two three", usage={"prompt": 11, "completion": 3, "cached": 2}))
        answer = self.client.chat.completions.create(model=self.model, messages=HELLO)
        choice = answer.choices[0]
        self.assertEqual((choice.message.role, choice.message.content), ("assistant", "one two three"))
        self.assertEqual((choice.finish_reason, answer.object, answer.model), ("stop", "chat.completion", self.model))
        usage = answer.usage
        self.assertEqual((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (11, 3, 14))
        self.assertEqual(usage.prompt_tokens_details.cached_tokens, 2)

    def test_headers_say_who_answered(self):
        answer = self.client.chat.completions.with_raw_response.create(model=self.model, messages=HELLO)
        headers = answer.headers
        self.assertEqual(headers["x-gateway-provider"], "openai")
        self.assertEqual(headers["x-gateway-target"], "openai")
        self.assertEqual(headers["x-gateway-model"], self.model)
        self.assertEqual(headers["x-gateway-attempts"], "1")
        self.assertRegex(headers["x-request-id"], "^[0-9a-f]{32}$")
        # The SDK shows it on what it parsed, which is where applications log it from.
        self.assertEqual(answer.parse()._request_id, headers["x-request-id"])

    def test_the_request_arrives_byte_for_byte(self):
        sent = []
        http = openai.DefaultHttpxClient(event_hooks={"request": [lambda request: sent.append(request.content)]})
        client = self.client.with_options(http_client=http)
        unknown = {"vendor": {"z": 1, "a": [1.50, "ü", None], "large": 123456789012345678901234567890}, "seed": 7}
        with client:
            client.chat.completions.create(model=self.model, messages=HELLO, extra_body=unknown)
        (seen,) = self.seen()
        self.assertEqual(seen["body"].encode(), sent[0])
        self.assertEqual(seen["json"]["vendor"]["a"], [1.5, "ü", None])

    def test_the_answer_returns_byte_for_byte(self):
        body = (
            '{"id": "x", "object": "chat.completion", "created": 1, "model": "%s", "vendor_note": {"b": 1.50, "a": []},'
            ' "choices": [{"index": 0, "finish_reason": "stop", "mood": "calm",'
            ' "message": {"role": "assistant", "content": "Hi \\u00fc", "vendor_trace": 12345678901234567890}}]}'
        ) % self.model
        self.script(raw(body))
        answer = self.client.chat.completions.with_raw_response.create(model=self.model, messages=HELLO)
        self.assertEqual(answer.text, body)
        parsed = answer.parse()
        self.assertEqual(parsed.model_extra["vendor_note"], {"b": 1.5, "a": []})
        self.assertEqual(parsed.choices[0].model_extra["mood"], "calm")
        self.assertEqual(parsed.choices[0].message.model_extra["vendor_trace"], 12345678901234567890)

    def test_the_callers_key_stays_here(self):
        self.client.chat.completions.create(model=self.model, messages=HELLO)
        (seen,) = self.seen()
        headers = [value for _, value in seen["headers"]]
        self.assertFalse([value for value in headers if self.gateway.key in value], headers)
