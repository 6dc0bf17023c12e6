import asyncio

import openai

from stack import eventually
from support import HELLO, Case, chat


class Async(Case):
    def run_with_client(self, task):
        async def run():
            # Not the one that is kept: a client belongs to the loop that it was made in.
            async with openai.AsyncOpenAI(base_url=f"{self.gateway.url}/v1", api_key=self.gateway.key) as client:
                return await task(client)

        return asyncio.run(run())

    def test_many_calls_at_once(self):
        async def many(client):
            calls = (client.chat.completions.create(model=self.model, messages=HELLO, user=str(n)) for n in range(20))
            return await asyncio.gather(*calls)

        self.script(*(chat(f"answer {n}") for n in range(20)))
        answers = self.run_with_client(many)
        self.assertEqual({answer.choices[0].message.content for answer in answers}, {f"answer {n}" for n in range(20)})
        self.assertEqual({request["json"]["user"] for request in self.seen()}, {str(n) for n in range(20)})

    def test_a_stream(self):
        async def words(client):
            stream = await client.chat.completions.create(model=self.model, messages=HELLO, stream=True)
            return [chunk.choices[0].delta.content async for chunk in stream if chunk.choices[0].delta.content]

        self.script(chat("one two three"))
        self.assertEqual(self.run_with_client(words), ["one ", "two ", "three"])

    def test_a_cancelled_task_ends_the_upstreams_work(self):
        async def cancel(client):
            task = asyncio.create_task(client.chat.completions.create(model=self.model, messages=HELLO))
            await asyncio.to_thread(eventually, self.seen, "request at the mock")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(self.seen_cancelled)

        self.script({"kind": "hang"})
        self.run_with_client(cancel)
        (row,) = eventually(lambda: self.gateway.rows(model=self.model), "row of the cancelled call")
        self.assertEqual((row["outcome"], row["attempts_count"]), ("client_cancelled", 1))
