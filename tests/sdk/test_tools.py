import json

from support import QUESTION, WEATHER, Case, chat, tools

CALLS = [("weather", '{"city": "Hamburg", "days": 3}'), ("weather", '{"city": "Oslo \\u2744"}')]


class Tools(Case):
    def ask(self, **more):
        return self.client.chat.completions.create(model=self.model, messages=QUESTION, tools=[WEATHER], **more)

    def test_parallel_calls_in_one_piece(self):
        self.script(tools(*CALLS))
        choice = self.ask().choices[0]
        calls = choice.message.tool_calls
        self.assertEqual(choice.finish_reason, "tool_calls")
        self.assertEqual([call.id for call in calls], ["call_0", "call_1"])
        self.assertEqual([(call.function.name, call.function.arguments) for call in calls], CALLS)

    def test_parallel_calls_in_a_stream(self):
        self.script(tools(*CALLS))
        collected, reasons = {}, []
        for chunk in self.ask(stream=True):
            (choice,) = chunk.choices
            reasons.append(choice.finish_reason)
            for part in choice.delta.tool_calls or []:
                call = collected.setdefault(part.index, {"id": part.id, "name": part.function.name, "arguments": ""})
                call["arguments"] += part.function.arguments or ""
        self.assertEqual(list(collected), [0, 1])
        self.assertEqual([call["id"] for call in collected.values()], ["call_0", "call_1"])
        self.assertEqual([(call["name"], call["arguments"]) for call in collected.values()], CALLS)
        self.assertEqual(reasons[-1], "tool_calls")

    def test_a_loop_with_results(self):
        self.script(tools(*CALLS), chat("Rain, and snow."))
        message = self.ask().choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": json.loads(call.function.arguments)["city"]}
            for call in message.tool_calls
        ]
        conversation = [*QUESTION, message, *results]
        answer = self.client.chat.completions.create(model=self.model, messages=conversation, tools=[WEATHER])
        self.assertEqual(answer.choices[0].message.content, "Rain, and snow.")
        told = self.seen()[1]["json"]["messages"]
        self.assertEqual([message["role"] for message in told], ["user", "assistant", "tool", "tool"])
        self.assertEqual(told[3], results[1])
