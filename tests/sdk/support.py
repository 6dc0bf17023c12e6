"""What the test modules share."""

import functools
import json
import unittest

import openai

from stack import eventually

HELLO = [{"role": "user", "content": "Hello"}]
QUESTION = [{"role": "user", "content": "What is the weather in Hamburg and in Oslo?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Case(unittest.TestCase):
    """A test with a model of its own: what it scripts at the mock, and what it sees there, is nobody else's."""

    stack = None
    maxDiff = None

    def setUp(self):
        self.model = self.id()
        self.mock, self.gateway = self.stack.mock, self.stack.gateway
        self.client = self.client_of(self.gateway)

    @staticmethod
    @functools.cache
    def client_of(gateway, key=None):
        """A client; the same one each time, because making one takes longer than a test."""
        return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key or gateway.key, max_retries=0, timeout=20)

    def script(self, *replies):
        self.mock.script(self.model, *replies)

    def seen(self):
        """What arrived at the mock."""
        return self.mock.requests(self.model)

    def seen_cancelled(self):
        def cancelled():
            return [request for request in self.seen() if request["cancelled"]]

        return eventually(cancelled, "cancelled request at the mock")


def chat(text, **more):
    return {"kind": "chat", "text": text, **more}


def tools(*calls):
    def call(nth, name, arguments):
        return {"id": f"call_{nth}", "name": name, "arguments": arguments}

    return {"kind": "tools", "calls": [call(nth, *named) for nth, named in enumerate(calls)]}


def says(text="", calls=(), reasoning=None, **more):
    """A turn with whatever one can have, in the wire that the upstream's path belongs to."""
    calls = tools(*calls)["calls"]
    return {"kind": "says", "text": text, "calls": calls, "reasoning": reasoning, **more}


def error(status, message, **more):
    return {"kind": "error", "status": status, "message": message, **more}


def raw(body):
    return {"kind": "raw", "status": 200, "chunks": [body if isinstance(body, str) else json.dumps(body)]}
