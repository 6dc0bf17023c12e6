"""What became of a request, as its caller and as the request log tell it."""

import openai

from support import HELLO, Case, chat


class Records(Case):
    def stream(self):
        stream = self.client.chat.completions.create(model=self.model, messages=HELLO, stream=True)
        return stream, stream.response.headers["x-request-id"]

    def test_a_cut_stream_is_an_error_after_its_words(self):
        for how in ["reset", "close", "end", "error_event"]:
            with self.subTest(how):
                self.script(chat("one two three four", ending={"after": 2, "how": how}))
                stream, request_id = self.stream()
                words = ""
                with self.assertRaises(openai.APIError) as caught:
                    for chunk in stream:
                        words += chunk.choices[0].delta.content or ""
                self.assertEqual(words, "one two ")
                # An error that came as a chunk, not a connection that broke: that would be a subclass without a code.
                self.assertEqual((type(caught.exception), caught.exception.type), (openai.APIError, "upstream_error"))
                row = self.gateway.log(request_id)
                self.assertEqual((row["outcome"], row["status"], len(row["attempts"])), ("partial", 200, 1))

    def test_a_stream_that_is_closed_ends_the_upstreams_work(self):
        self.script(chat("one two three", gate=self.model))
        self.mock.release(self.model)
        stream, request_id = self.stream()
        next(chunk for chunk in stream if chunk.choices[0].delta.content)
        stream.close()
        self.seen_cancelled()
        row = self.gateway.log(request_id)
        self.assertEqual((row["outcome"], row["usage_estimated"]), ("client_cancelled", True))
        (attempt,) = row["attempts"]
        self.assertEqual((attempt["target"], attempt["model"]), ("openai", self.model))

    def test_a_client_that_does_not_wait_ends_the_upstreams_work(self):
        self.script({"kind": "hang"})
        with self.assertRaises(openai.APITimeoutError):
            impatient = self.client.with_options(timeout=0.1)
            impatient.chat.completions.create(model=self.model, messages=HELLO)
        self.seen_cancelled()

    def test_a_target_that_is_down_is_one_attempt_of_one_request(self):
        fallback = self.stack.fallback
        self.script(chat("from the second"))
        client = self.client_of(fallback)
        answer = client.chat.completions.with_raw_response.create(model=self.model, messages=HELLO)
        self.assertEqual(answer.parse().choices[0].message.content, "from the second")
        self.assertEqual(answer.headers["x-gateway-attempts"], "2")
        self.assertEqual(answer.headers["x-gateway-target"], "second")
        self.assertEqual(len(self.seen()), 1)

        request_id = answer.headers["x-request-id"]
        row = fallback.log(request_id)
        attempts = [(attempt["target"], attempt["outcome"]) for attempt in row["attempts"]]
        self.assertEqual(attempts, [("first", "connect"), ("second", "success")])
        verdicts = [(verdict["target"], verdict["state"]) for verdict in row["verdicts"]]
        self.assertEqual(verdicts, [("first", "failed"), ("second", "chosen")])
        self.assertEqual([row["trace_id"] for row in fallback.rows(model=self.model)], [request_id])

    def test_a_stream_falls_back_too(self):
        self.script(chat("from the second"))
        client = self.client_of(self.stack.fallback)
        stream = client.chat.completions.create(model=self.model, messages=HELLO, stream=True)
        self.assertEqual(stream.response.headers["x-gateway-attempts"], "2")
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in stream), "from the second")
