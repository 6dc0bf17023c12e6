import base64
import struct

import openai

from support import Case, raw


class Models(Case):
    def test_the_upstreams_models_are_listed(self):
        models = {model.id: model for model in self.client.models.list()}
        self.assertEqual(list(models), ["mock-small", "vendor/mock-large"])
        self.assertEqual((models["mock-small"].object, models["mock-small"].owned_by), ("model", "openai"))

    def test_one_model_by_its_id(self):
        for name in ["mock-small", "vendor/mock-large"]:
            self.assertEqual(self.client.models.retrieve(name).id, name)

    def test_an_unknown_model_is_not_found(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("nobody-has-this")
        self.assertEqual(caught.exception.code, "model_not_found")


class Embeddings(Case):
    def test_base64_is_what_the_sdk_asks_for_and_reads(self):
        packed = base64.b64encode(struct.pack("<3f", 0.5, -0.25, 1.0)).decode()
        entry = {"object": "embedding", "index": 0, "embedding": packed}
        usage = {"prompt_tokens": 2, "total_tokens": 2}
        self.script(raw({"object": "list", "model": self.model, "data": [entry], "usage": usage}))
        answer = self.client.embeddings.create(model=self.model, input="a text")
        self.assertEqual(answer.data[0].embedding, [0.5, -0.25, 1.0])
        (seen,) = self.seen()
        self.assertEqual(seen["path"], "/v1/embeddings")
        self.assertEqual(seen["json"]["encoding_format"], "base64")

    def test_dimensions_and_several_inputs(self):
        self.script({"kind": "embeddings", "dimensions": 3})
        answer = self.client.embeddings.create(
            model=self.model, input=["a", "b"], dimensions=3, encoding_format="float"
        )
        self.assertEqual([entry.embedding for entry in answer.data], [[1, 0, 0], [0, 1, 0]])
        self.assertEqual([entry.index for entry in answer.data], [0, 1])
        (seen,) = self.seen()
        self.assertEqual((seen["json"]["dimensions"], seen["json"]["input"]), (3, ["a", "b"]))
