"""The built-in provider, which is all that a first start without any credential has."""

import json

from support import HELLO, QUESTION, WEATHER, Case


class Demo(Case):
    def setUp(self):
        super().setUp()
        self.client = self.client_of(self.stack.demo)

    def ask(self, messages=HELLO, **more):
        return self.client.chat.completions.create(model="demo", messages=messages, **more)

    def test_it_says_that_it_is_simulated(self):
        answer = self.ask(max_tokens=8)
        self.assertTrue(answer.choices[0].message.content.startswith("(simulated)"))
        self.assertEqual(answer.system_fingerprint, "simulated")

    def test_most_tokens(self):
        answer = self.ask(max_tokens=4)
        self.assertEqual((answer.choices[0].finish_reason, answer.usage.completion_tokens), ("length", 4))

    def test_stop_ends_before_its_words(self):
        whole = self.ask(max_tokens=12).choices[0].message.content
        word = whole.split()[3]
        choice = self.ask(max_tokens=12, stop=[word]).choices[0]
        self.assertEqual((choice.message.content, choice.finish_reason), (whole[: whole.index(word)], "stop"))

    def test_tools(self):
        choice = self.ask(QUESTION, tools=[WEATHER], tool_choice="required").choices[0]
        call = choice.message.tool_calls[0]
        self.assertEqual((choice.finish_reason, call.function.name), ("tool_calls", "weather"))
        self.assertIn("city", json.loads(call.function.arguments))

    def test_tools_in_a_stream(self):
        arguments = ""
        for chunk in self.ask(QUESTION, tools=[WEATHER], tool_choice="required", stream=True):
            for part in chunk.choices[0].delta.tool_calls or []:
                arguments += part.function.arguments or ""
        self.assertIn("city", json.loads(arguments))

    def test_a_stream_ends_with_its_usage(self):
        *_, last = self.ask(max_tokens=4, stream=True, stream_options={"include_usage": True})
        self.assertEqual((last.choices, last.usage.completion_tokens), ([], 4))

    def test_embeddings_have_the_asked_dimensions(self):
        answer = self.client.embeddings.create(model="demo-embed", input=["a", "b"], dimensions=8)
        self.assertEqual([len(entry.embedding) for entry in answer.data], [8, 8])
