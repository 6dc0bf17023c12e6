from support import HELLO, Case, chat


class Stream(Case):
    def stream(self, **more):
        return self.client.chat.completions.create(model=self.model, messages=HELLO, stream=True, **more)

    def test_words_come_one_by_one(self):
        self.script(chat("one two three"))
        chunks = list(self.stream())
        deltas = [chunk.choices[0].delta for chunk in chunks]
        self.assertEqual([delta.content for delta in deltas if delta.content], ["one ", "two ", "three"])
        self.assertEqual(deltas[0].role, "assistant")
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertEqual({chunk.model for chunk in chunks}, {self.model})

    def test_usage_comes_last_when_it_is_asked_for(self):
        self.script(chat("one two", usage={"prompt": 5, "completion": 2}))
        *chunks, last = self.stream(stream_options={"include_usage": True})
        self.assertEqual(last.choices, [])
        self.assertEqual((last.usage.prompt_tokens, last.usage.completion_tokens), (5, 2))
        self.assertEqual([chunk.usage for chunk in chunks], [None] * len(chunks))

    def test_no_usage_when_it_is_not_asked_for(self):
        self.script(chat("one two", usage={"prompt": 5, "completion": 2}))
        stream = self.stream()
        chunks = list(stream)
        self.assertFalse([chunk for chunk in chunks if not chunk.choices or "usage" in chunk.model_fields_set], chunks)
        # It is counted all the same.
        row = self.gateway.log(stream.response.headers["x-request-id"])
        self.assertEqual((row["prompt_tokens"], row["completion_tokens"], row["usage_estimated"]), (5, 2, False))

    def test_usage_that_an_upstream_volunteers_is_kept_back(self):
        self.script(chat("one two", report="always"))
        chunks = list(self.stream())
        self.assertFalse([chunk for chunk in chunks if not chunk.choices or chunk.usage], chunks)

    def test_the_first_word_does_not_wait_for_the_last(self):
        self.script(chat("one two", gate=self.model))
        self.mock.release(self.model)
        words = (chunk.choices[0].delta.content for chunk in self.stream())
        self.assertEqual(next(word for word in words if word), "one ")
        self.mock.release(self.model)
        self.assertEqual(next(word for word in words if word), "two")

    def test_the_sdks_own_accumulator(self):
        self.script(chat("one two three"))
        with self.client.chat.completions.stream(model=self.model, messages=HELLO) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_completion().choices[0].message.content, "one two three")
