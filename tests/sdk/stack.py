"""The programs under test: three gateways and the mock upstream that stands behind two of them."""

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

UPSTREAM_KEY = "sk-upstream-secret-of-the-gateway"
PATIENCE = 20


def call(url, method="GET", body=None, key=None):
    """A plain HTTP call, for what no SDK has a method for."""
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        text = response.read()
    return json.loads(text) if text else None


def eventually(probe, what):
    """Asks again and again until the answer is something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := probe():
            return found
        time.sleep(0.005)
    raise AssertionError(f"in {PATIENCE} s there was no {what}")


class Program:
    """A child process that says where it listens."""

    def __init__(self, name, folder, command, environment, announcement):
        self.name = name
        self.output = folder / f"{name}.log"
        # Nothing of this shell's: a credential or a proxy in it would change what is tested.
        environment = {"PATH": os.environ["PATH"], **environment}
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        self.announcement = re.compile(announcement, re.DOTALL)

    def announced(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended at once:\n{self.output.read_text()}")
        return self.announcement.search(self.output.read_text())

    def wait_announced(self):
        return eventually(self.announced, f"address of {self.name}").groups()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Mock(Program):
    """The mock upstream. How it is scripted is told in tests/src/mock/control.rs."""

    def __init__(self, folder):
        super().__init__("mock", folder, [os.environ["MOCK_BIN"]], {}, r"listening on (http://\S+)")
        (self.url,) = self.wait_announced()

    def script(self, model, *replies):
        call(f"{self.url}/_script", "POST", {"match": {"model": model}, "replies": replies})

    def list_models(self, *ids):
        call(f"{self.url}/_script", "POST", {"match": {"path": "/models"}, "default": {"kind": "models", "ids": ids}})

    def release(self, gate, count=1):
        call(f"{self.url}/_release", "POST", {"gate": gate, "count": count})

    def requests(self, model):
        def is_it(request):
            # Gemini's and Bedrock's paths name the model.
            path = urllib.parse.unquote(request["path"])
            named = re.search(r"/models?/(.+?)(:\w+|/converse|/converse-stream|/invoke)$", path)
            return (named.group(1) if named else (request["json"] or {}).get("model")) == model

        return [request for request in call(f"{self.url}/_requests") if is_it(request)]


class Gateway(Program):
    """A gateway with an empty database of its own."""

    def __init__(self, name, folder, **environment):
        data = folder / name
        environment = {"DATA_DIR": str(data), "HOST": "127.0.0.1", "PORT": "0", **environment}
        announcement = r"Switchyard is at (http://[^/\s]+).*?(sy_[\w-]{43})"
        super().__init__(name, folder, [os.environ["SWITCHYARD_BIN"]], environment, announcement)

    def wait_ready(self):
        self.url, self.admin_key = self.wait_announced()
        eventually(self.ready, f"readiness of {self.name}")
        # Applications call with keys like this one, never with the first.
        self.key = self.create_key("application")

    def ready(self):
        try:
            return call(f"{self.url}/readyz")["status"] == "ready"
        except urllib.error.URLError:
            return False

    def create_key(self, name, scopes=None):
        body = {"name": name} if scopes is None else {"name": name, "scopes": scopes}
        return call(f"{self.url}/admin/keys", "POST", body, self.admin_key)["key"]

    def log(self, request_id):
        """The request's row with its attempts. It is written within a moment of the answer's end."""

        def row():
            try:
                return call(f"{self.url}/admin/logs/{request_id}", key=self.admin_key)
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise

        return eventually(row, f"row of request {request_id}")

    def rows(self, **query):
        return call(f"{self.url}/admin/logs?{urllib.parse.urlencode(query)}", key=self.admin_key)["data"]


FALLBACK = """
strategy: {{mode: fallback}}
targets: [{{virtual_key: first}}, {{virtual_key: second}}]
providers:
  - {{id: first, kind: openai, base_url: "{refused}"}}
  - {{id: second, kind: openai, base_url: "{mock}/v1"}}
"""


WIRES = ("openai", "anthropic", "gemini", "bedrock", "cohere")
DIALECTS = """
strategy: {{mode: fallback}}
targets: [{{virtual_key: openai}}, {{virtual_key: anthropic}}, {{virtual_key: gemini}}, {{virtual_key: bedrock}}, {{virtual_key: cohere}}, {{virtual_key: responses}}]
providers:
  - {{id: openai, kind: openai, base_url: "{mock}/v1", api_key: "${{UP}}"}}
  - {{id: anthropic, kind: anthropic, base_url: "{mock}/v1", api_key: "${{UP}}"}}
  - {{id: gemini, kind: gemini, base_url: "{mock}/v1beta", api_key: "${{UP}}"}}
  - {{id: bedrock, kind: bedrock, base_url: "{mock}", region: eu-central-1, access_key_id: AKIAMOCK, secret_access_key: "${{UP}}"}}
  - {{id: cohere, kind: cohere, base_url: "{mock}", api_key: "${{UP}}"}}
  - {{id: responses, kind: openai, base_url: "{mock}/v1", api_key: "${{UP}}", surfaces: [responses, completions]}}
"""


class Stack:
    """Everything, from the first line to the last."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = []
        # Bound and never listening: whoever connects is refused, and nobody else gets the port meanwhile.
        self.refusing = socket.socket()
        self.refusing.bind(("127.0.0.1", 0))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.mock = self.started(Mock(self.folder))
        self.mock.list_models("mock-small", "vendor/mock-large")
        config = self.folder / "fallback.yaml"
        refused = f"http://127.0.0.1:{self.refusing.getsockname()[1]}/v1"
        config.write_text(FALLBACK.format(refused=refused, mock=self.mock.url))

        upstream = {"OPENAI_API_KEY": UPSTREAM_KEY, "OPENAI_BASE_URL": f"{self.mock.url}/v1"}
        self.gateway = self.started(Gateway("gateway", self.folder, **upstream))
        self.fallback = self.started(Gateway("fallback", self.folder, GATEWAY_CONFIG=str(config)))
        self.demo = self.started(Gateway("demo", self.folder))
        config = self.folder / "dialects.yaml"
        config.write_text(DIALECTS.format(mock=self.mock.url))
        self.dialects = self.started(Gateway("dialects", self.folder, GATEWAY_CONFIG=str(config), UP=UPSTREAM_KEY))
        for gateway in (self.gateway, self.fallback, self.demo, self.dialects):
            gateway.wait_ready()

    def started(self, program):
        self.programs.append(program)
        return program

    def show_logs(self):
        for program in self.programs:
            lines = program.output.read_text().splitlines()[-15:]
            print(f"--- {program.name}", *lines, sep="\n")

    def __exit__(self, *_):
        for program in self.programs:
            program.kill()
        self.refusing.close()
