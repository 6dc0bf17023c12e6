"""Each dialect's own client, at upstreams of each wire: what one says reaches the other, and comes back.

The mock refuses what a vendor's documentation forbids (roles that do not alternate, results without calls, signatures that are
not its own), so a conversation that goes through is one that the vendor would have taken.
"""

import base64
import functools
import json

import anthropic
import openai
from google import genai
from google.genai import types
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from stack import WIRES
from support import Case, error, says

QUESTION = "What is the weather in Hamburg and in Oslo?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
CALLS = [("weather", '{"city": "Hamburg", "days": 3}'), ("weather", '{"city": "Oslo \\u2744", "days": 1}')]
INPUTS = [json.loads(arguments) for _, arguments in CALLS]
PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()


@functools.cache
def openai_client(gateway, wire):
    return openai.OpenAI(
        base_url=f"{gateway.url}/v1",
        api_key=gateway.key,
        max_retries=0,
        timeout=20,
        default_headers={"x-gateway-only": wire},
    )


@functools.cache
def anthropic_client(gateway, wire):
    return anthropic.Anthropic(
        base_url=gateway.url,
        api_key=gateway.key,
        max_retries=0,
        timeout=20,
        default_headers={"x-gateway-only": wire},
    )


@functools.cache
def google_client(gateway, wire):
    options = types.HttpOptions(base_url=gateway.url, headers={"x-gateway-only": wire}, timeout=20_000)
    return genai.Client(api_key=gateway.key, vertexai=False, http_options=options)


class Dialects(Case):
    """One test for each feature; in it each wire, whole and streamed."""

    def setUp(self):
        super().setUp()
        self.gateway = self.stack.dialects

    def each(self, wires=WIRES):
        for wire in wires:
            for stream in (False, True):
                with self.subTest(wire=wire, stream=stream):
                    self.name(wire, "stream" if stream else "whole")
                    yield stream

    def name(self, wire, more=""):
        """Of its own models Gemini's wire knows which ones check signatures."""
        self.wire = wire
        self.model = f"{'gemini-3-' if wire == 'gemini' else ''}{self.id()}-{wire}{more}"

    def last(self):
        """The last request at the mock, as text: its wires have little else in common."""
        return json.dumps(self.seen()[-1]["json"])

    def headers(self):
        return {"x-gateway-only": self.wire}


class OpenAi(Dialects):
    def ask(self, messages, stream, **more):
        client = openai_client(self.gateway, self.wire)
        if not stream:
            return client.chat.completions.create(model=self.model, messages=messages, **more)
        with client.chat.completions.stream(
            model=self.model, messages=messages, stream_options={"include_usage": True}, **more
        ) as events:
            for _ in events:
                pass
            return events.get_final_completion()

    def tools(self):
        function = {"name": "weather", "description": "The weather", "parameters": SCHEMA, "strict": True}
        return [{"type": "function", "function": function}]

    def test_plain(self):
        for stream in self.each():
            self.script(says("Hello from there."))
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
            answer = self.ask(messages, stream, max_completion_tokens=50, stop=["END"], temperature=0.5)
            self.assertEqual(answer.choices[0].message.content, "Hello from there.")
            self.assertEqual(answer.choices[0].finish_reason, "stop")
            self.assertEqual((answer.usage.prompt_tokens, answer.usage.completion_tokens), (9, 3))
            self.assertEqual(answer.model, self.model)
            self.assertIn("Be brief.", self.last())

    def converse(self, stream, calls):
        self.script(says("I will look.", calls), says("Rain."))
        messages = [{"role": "user", "content": QUESTION}]
        message = self.ask(messages, stream, tools=self.tools()).choices[0].message
        found = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
        self.assertEqual(found, [("weather", json.loads(arguments)) for _, arguments in calls])
        self.assertEqual(len({call.id for call in message.tool_calls}), len(calls))
        # As a client does that keeps what it knows and nothing else.
        kept = json.loads(message.model_dump_json(exclude_none=True, exclude={"parsed"}))
        for call in kept["tool_calls"]:
            call["function"].pop("parsed_arguments", None)
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"rain {nth}"}
            for nth, call in enumerate(message.tool_calls)
        ]
        answer = self.ask([*messages, kept, *results], stream, tools=self.tools())
        self.assertEqual(answer.choices[0].message.content, "Rain.")
        self.assertIn(f"rain {len(calls) - 1}", self.last())

    def test_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS[:1])

    def test_parallel_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS)

    def test_image(self):
        for stream in self.each():
            self.script(says("A pixel."))
            url = f"data:image/png;base64,{PIXEL}"
            content = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]
            answer = self.ask([{"role": "user", "content": content}], stream)
            self.assertEqual(answer.choices[0].message.content, "A pixel.")
            self.assertIn(PIXEL, self.last())

    def test_json_schema(self):
        for stream in self.each():
            self.script(says('{"city": "Oslo", "days": 1}'))
            form = {"type": "json_schema", "json_schema": {"name": "trip", "strict": True, "schema": SCHEMA}}
            answer = self.ask([{"role": "user", "content": "Where?"}], stream, response_format=form)
            self.assertEqual(json.loads(answer.choices[0].message.content), {"city": "Oslo", "days": 1})
            self.assertIn("integer", self.last().lower())

    def test_reasoning(self):
        for stream in self.each():
            self.script(says("42.", CALLS[:1], "Let me think."), says("Rain."))
            messages = [{"role": "user", "content": "Think."}]
            more = {"reasoning_effort": "low", "tools": self.tools(), "max_completion_tokens": 4000}
            message = self.ask(messages, stream, **more).choices[0].message
            if not stream:
                # The helper that collects streams keeps no field that it does not know.
                self.assertEqual(message.reasoning_content, "Let me think.")
            kept = json.loads(message.model_dump_json(exclude_none=True, exclude={"parsed"}))
            for call in kept["tool_calls"]:
                call["function"].pop("parsed_arguments", None)
            result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
            answer = self.ask([*messages, kept, result], stream, **more)
            self.assertEqual(answer.choices[0].message.content, "Rain.")

    def test_completions(self):
        for stream in self.each():
            self.script(says("Hello from there."))
            client = openai_client(self.gateway, self.wire)
            answer = client.completions.create(model=self.model, prompt="Say hello", max_tokens=9, stream=stream)
            text = "".join(chunk.choices[0].text for chunk in answer if chunk.choices) if stream else answer.choices[0].text
            self.assertEqual(text, "Hello from there.")

    def test_embeddings(self):
        for wire in ("openai", "gemini", "cohere"):
            with self.subTest(wire=wire):
                self.name(wire)
                client = openai_client(self.gateway, self.wire)
                self.mock.script(self.model, {"kind": "embeddings"})
                answer = client.embeddings.create(model=self.model, input=["a", "b"])
                self.assertEqual([len(entry.embedding) for entry in answer.data], [4, 4])
                self.assertEqual(answer.data[1].embedding[0] if wire != "openai" else 1.0, 1.0)

    def test_what_is_lost_is_told(self):
        self.wire, self.model = "anthropic", self.id()
        self.script(says("Hello."))
        client = openai_client(self.gateway, self.wire)
        raw = client.chat.completions.with_raw_response.create(
            model=self.model, messages=[{"role": "user", "content": "Hello"}], seed=7, logit_bias={"50256": -100}
        )
        self.assertIn("dropped=2", raw.headers["x-gateway-translation"])
        row = self.gateway.log(raw.headers["x-request-id"])
        lost = [note["field"] for note in row["notes"] if note["fate"] == "dropped"]
        self.assertEqual(sorted(lost), ["logit_bias", "seed"])

    def test_a_refused_credential_is_no_fault_of_the_caller(self):
        for wire in WIRES:
            with self.subTest(wire=wire):
                self.name(wire)
                self.script(error(401, "invalid key"))
                client = openai_client(self.gateway, self.wire)
                with self.assertRaises(openai.InternalServerError) as caught:
                    client.chat.completions.create(model=self.model, messages=[{"role": "user", "content": "Hello"}])
                self.assertEqual(caught.exception.status_code, 502)
                self.assertEqual(caught.exception.code, "upstream_auth_error")


class Responses(Dialects):
    def setUp(self):
        super().setUp()
        self.wires = (*WIRES, "responses")

    def ask(self, stream, **more):
        client = openai_client(self.gateway, self.wire)
        if not stream:
            return client.responses.create(model=self.model, **more)
        with client.responses.stream(model=self.model, **more) as events:
            seen = [event.type for event in events]
            self.assertEqual(seen[-1], "response.completed")
            return events.get_final_response()

    def tools(self):
        return [{"type": "function", "name": "weather", "description": "The weather", "parameters": SCHEMA, "strict": True}]

    def test_plain(self):
        for stream in self.each(self.wires):
            self.script(says("Hello from there."))
            answer = self.ask(stream, input="Hello", instructions="Be brief.", max_output_tokens=50)
            self.assertEqual(answer.output_text, "Hello from there.")
            self.assertEqual((answer.status, answer.usage.input_tokens, answer.usage.output_tokens), ("completed", 9, 3))
            self.assertIn("Be brief.", self.last())

    def test_parallel_tools_and_the_state_that_is_kept(self):
        for stream in self.each(self.wires):
            self.script(says("I will look.", CALLS), says("Rain."))
            first = self.ask(stream, input=QUESTION, tools=self.tools())
            calls = [item for item in first.output if item.type == "function_call"]
            self.assertEqual([json.loads(call.arguments) for call in calls], INPUTS)
            results = [
                {"type": "function_call_output", "call_id": call.call_id, "output": f"rain {nth}"}
                for nth, call in enumerate(calls)
            ]
            answer = self.ask(stream, input=results, previous_response_id=first.id, tools=self.tools())
            self.assertEqual(answer.output_text, "Rain.")
            if self.wire != "responses":
                self.assertIn(QUESTION, self.last())
            client = self.client_of(self.gateway)
            self.assertEqual(client.responses.retrieve(answer.id).output_text, "Rain.")
            items = client.responses.input_items.list(answer.id, order="asc").data
            self.assertGreaterEqual(len(items), 2)
            client.responses.delete(answer.id)
            with self.assertRaises(openai.NotFoundError):
                client.responses.retrieve(answer.id)

    def test_json_schema(self):
        for stream in self.each(self.wires):
            self.script(says('{"city": "Oslo", "days": 1}'))
            form = {"format": {"type": "json_schema", "name": "trip", "strict": True, "schema": SCHEMA}}
            answer = self.ask(stream, input="Where?", text=form)
            self.assertEqual(json.loads(answer.output_text), {"city": "Oslo", "days": 1})

    def test_reasoning_goes_round_without_a_store(self):
        for stream in self.each():
            self.script(says("Hm.", CALLS[:1], "Let me think."), says("Rain."))
            more = {
                "reasoning": {"effort": "low", "summary": "auto"},
                "include": ["reasoning.encrypted_content"],
                "store": False,
                "tools": self.tools(),
                "max_output_tokens": 4000,
            }
            first = self.ask(stream, input=QUESTION, **more)
            thought = next(item for item in first.output if item.type == "reasoning")
            self.assertEqual(thought.summary[0].text, "Let me think.")
            call = next(item for item in first.output if item.type == "function_call")
            history = [{"role": "user", "content": QUESTION}, *[self.plain(item) for item in first.output]]
            history.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
            self.assertEqual(self.ask(stream, input=history, **more).output_text, "Rain.")

    def plain(self, item):
        kept = json.loads(item.model_dump_json(exclude_none=True))
        kept.pop("parsed_arguments", None)
        for part in kept.get("content", []):
            part.pop("parsed", None)
        return kept


class Anthropic(Dialects):
    def ask(self, messages, stream, **more):
        client = anthropic_client(self.gateway, self.wire)
        more = {"max_tokens": 2048, **more}
        if not stream:
            return client.messages.create(model=self.model, messages=messages, **more)
        with client.messages.stream(model=self.model, messages=messages, **more) as events:
            return events.get_final_message()

    def tools(self):
        return [{"name": "weather", "description": "The weather", "input_schema": SCHEMA}]

    def test_plain(self):
        for stream in self.each():
            self.script(says("Hello from there.", usage={"prompt": 30, "completion": None, "cached": 20}))
            answer = self.ask([{"role": "user", "content": "Hello"}], stream, system="Be brief.", stop_sequences=["END"])
            self.assertEqual([block.text for block in answer.content], ["Hello from there."])
            self.assertEqual(answer.stop_reason, "end_turn")
            usage = answer.usage
            self.assertEqual((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (10, 20, 3))
            self.assertEqual(answer.model, self.model)
            self.assertIn("Be brief.", self.last())

    def converse(self, stream, calls):
        self.script(says("I will look.", calls), says("Rain."))
        messages = [{"role": "user", "content": QUESTION}]
        answer = self.ask(messages, stream, tools=self.tools())
        self.assertEqual(answer.stop_reason, "tool_use")
        uses = [block for block in answer.content if block.type == "tool_use"]
        self.assertEqual([(use.name, use.input) for use in uses], [("weather", i) for i in INPUTS[: len(calls)]])
        results = [
            {"type": "tool_result", "tool_use_id": use.id, "content": f"rain {nth}"} for nth, use in enumerate(uses)
        ]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
        answer = self.ask(messages, stream, tools=self.tools())
        self.assertEqual(answer.content[0].text, "Rain.")
        self.assertIn(f"rain {len(calls) - 1}", self.last())

    def test_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS[:1])

    def test_parallel_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS)

    def test_image(self):
        for stream in self.each():
            self.script(says("A pixel."))
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
            answer = self.ask([{"role": "user", "content": content}], stream)
            self.assertEqual(answer.content[0].text, "A pixel.")
            self.assertIn(PIXEL, self.last())

    def test_json_schema(self):
        for stream in self.each():
            self.script(says('{"city": "Oslo", "days": 1}'))
            form = {"format": {"type": "json_schema", "schema": SCHEMA}}
            answer = self.ask([{"role": "user", "content": "Where?"}], stream, extra_body={"output_config": form})
            self.assertEqual(json.loads(answer.content[0].text), {"city": "Oslo", "days": 1})
            self.assertIn("integer", self.last().lower())

    def test_reasoning(self):
        for stream in self.each():
            self.script(says("Hm.", CALLS[:1], "Let me think."), says("Rain."))
            messages = [{"role": "user", "content": QUESTION}]
            more = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": self.tools()}
            answer = self.ask(messages, stream, **more)
            self.assertEqual(answer.content[0].type, "thinking")
            self.assertEqual(answer.content[0].thinking, "Let me think.")
            use = answer.content[-1]
            result = {"type": "tool_result", "tool_use_id": use.id, "content": "rain"}
            messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
            self.assertEqual(self.ask(messages, stream, **more).content[0].text, "Rain.")

    def test_count_tokens(self):
        for wire in WIRES:
            with self.subTest(wire=wire):
                self.name(wire)
                self.script(says("-"))
                client = anthropic_client(self.gateway, self.wire)
                counted = client.messages.count_tokens(model=self.model, messages=[{"role": "user", "content": "Hello"}])
                self.assertGreater(counted.input_tokens, 0)

    def test_errors_have_its_shape(self):
        self.wire, self.model = "openai", self.id()
        self.script(error(429, "slow down"))
        with self.assertRaises(anthropic.RateLimitError) as caught:
            self.ask([{"role": "user", "content": "Hello"}], False)
        self.assertEqual(caught.exception.body["error"]["type"], "rate_limit_error")
        client = anthropic.Anthropic(base_url=self.gateway.url, api_key="sy_nobody", max_retries=0)
        with self.assertRaises(anthropic.AuthenticationError):
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hello"}])


class Gemini(Dialects):
    def genai(self):
        return google_client(self.gateway, self.wire)

    def ask(self, contents, stream, **config):
        # An automatic call of functions would hide what is tested.
        config = types.GenerateContentConfig(
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True), **config
        )
        models = self.genai().models
        if not stream:
            answer = models.generate_content(model=self.model, contents=contents, config=config)
            self.finish, self.usage = answer.candidates[0].finish_reason, answer.usage_metadata
            return answer.candidates[0].content.parts
        parts = []
        for chunk in models.generate_content_stream(model=self.model, contents=contents, config=config):
            for candidate in chunk.candidates or []:
                parts += (candidate.content and candidate.content.parts) or []
                self.finish = candidate.finish_reason or getattr(self, "finish", None)
            self.usage = chunk.usage_metadata or getattr(self, "usage", None)
        return parts

    def tools(self):
        declaration = types.FunctionDeclaration(name="weather", description="The weather", parameters_json_schema=SCHEMA)
        return [types.Tool(function_declarations=[declaration])]

    @staticmethod
    def text(parts):
        return "".join(part.text or "" for part in parts if not part.thought)

    def test_plain(self):
        for stream in self.each():
            self.script(says("Hello from there."))
            parts = self.ask("Hello", stream, system_instruction="Be brief.", max_output_tokens=50, stop_sequences=["END"])
            self.assertEqual(self.text(parts), "Hello from there.")
            self.assertEqual(self.finish, types.FinishReason.STOP)
            self.assertEqual((self.usage.prompt_token_count, self.usage.candidates_token_count), (9, 3))
            self.assertIn("Be brief.", self.last())

    def converse(self, stream, calls):
        self.script(says("I will look.", calls), says("Rain."))
        contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        parts = self.ask(contents, stream, tools=self.tools())
        made = [part.function_call for part in parts if part.function_call]
        self.assertEqual([(call.name, call.args) for call in made], [("weather", i) for i in INPUTS[: len(calls)]])
        results = [
            types.Part(
                function_response=types.FunctionResponse(id=call.id, name=call.name, response={"output": f"rain {nth}"})
            )
            for nth, call in enumerate(made)
        ]
        kept = [part for part in parts if part.text != ""]
        contents += [types.Content(role="model", parts=kept), types.Content(role="user", parts=results)]
        self.assertEqual(self.text(self.ask(contents, stream, tools=self.tools())), "Rain.")
        self.assertIn(f"rain {len(calls) - 1}", self.last())

    def test_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS[:1])

    def test_parallel_tools(self):
        for stream in self.each():
            self.converse(stream, CALLS)

    def test_image(self):
        for stream in self.each():
            self.script(says("A pixel."))
            image = types.Part.from_bytes(data=base64.b64decode(PIXEL), mime_type="image/png")
            self.assertEqual(self.text(self.ask(["What is it?", image], stream)), "A pixel.")
            self.assertIn(PIXEL, self.last())

    def test_json_schema(self):
        for stream in self.each():
            self.script(says('{"city": "Oslo", "days": 1}'))
            config = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
            self.assertEqual(json.loads(self.text(self.ask("Where?", stream, **config))), {"city": "Oslo", "days": 1})
            self.assertIn("integer", self.last().lower())

    def test_reasoning(self):
        for stream in self.each():
            self.script(says("42.", (), "Let me think."))
            thinking = types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)
            parts = self.ask("Think.", stream, thinking_config=thinking, max_output_tokens=4000)
            self.assertEqual("".join(part.text for part in parts if part.thought), "Let me think.")
            self.assertEqual(self.text(parts), "42.")

    def test_count_tokens_and_models(self):
        for wire in WIRES:
            with self.subTest(wire=wire):
                self.name(wire)
                self.script(says("-"))
                self.assertGreater(self.genai().models.count_tokens(model=self.model, contents="Hello").total_tokens, 0)
        self.assertTrue([model.name for model in self.genai().models.list()])

    def test_errors_have_its_shape(self):
        self.wire, self.model = "anthropic", self.id()
        self.script(error(429, "slow down"))
        with self.assertRaises(genai.errors.ClientError) as caught:
            self.ask("Hello", False)
        self.assertEqual((caught.exception.code, caught.exception.status), (429, "RESOURCE_EXHAUSTED"))


class LangChain(Dialects):
    def test_tools(self):
        for stream in self.each():
            self.script(says("", CALLS), says("Rain."))
            model = ChatOpenAI(
                model=self.model,
                base_url=f"{self.gateway.url}/v1",
                api_key=self.gateway.key,
                default_headers=self.headers(),
                max_retries=0,
            ).bind_tools([{"type": "function", "function": {"name": "weather", "description": "-", "parameters": SCHEMA}}])

            def ask(messages):
                if not stream:
                    return model.invoke(messages)
                return functools.reduce(lambda whole, chunk: whole + chunk, model.stream(messages))

            first = ask([HumanMessage(QUESTION)])
            self.assertEqual([call["args"] for call in first.tool_calls], INPUTS)
            results = [ToolMessage("rain", tool_call_id=call["id"]) for call in first.tool_calls]
            self.assertEqual(ask([HumanMessage(QUESTION), first, *results]).content, "Rain.")
