"""Starts the programs under test, runs the suites against them, and ends everything whatever happens."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path

from stack import Stack
from support import Case

HERE = Path(__file__).parent


class Lines(unittest.TestResult):
    """One line for each test, and what went wrong below it."""

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def say(self, verdict, test):
        module = type(test).__module__.removeprefix("test_")
        name = test._testMethodName.removeprefix("test_").replace("_", " ")
        took = (time.monotonic() - self.began) * 1000
        print(f"    {verdict:<6} python {module}: {name} ({took:.0f} ms)", flush=True)

    def addSuccess(self, test):
        self.say("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say("FAILED", test)
        print(self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.say(f"FAILED {subtest._subDescription()}", test)
            print("".join(traceback.format_exception(*err)))

    def addError(self, test, err):
        super().addError(test, err)
        # A module that cannot be loaded stands here as a test of its own.
        self.say("FAILED", test)
        print(self.errors[-1][1])


def python_tests(words):
    suite = unittest.defaultTestLoader.discover(str(HERE), pattern="test_*.py")
    wanted = unittest.TestSuite(test for test in each(suite) if not words or any(word in test.id() for word in words))
    if not wanted.countTestCases():
        sys.exit(f"no test has one of these in its name: {', '.join(words)}")
    result = Lines()
    wanted.run(result)
    return result.wasSuccessful()


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def start_node_tests(stack):
    # Beside the Python tests: each test has a model of its own, so none meets another's script.
    environment = {
        **os.environ,
        "GATEWAY_URL": stack.gateway.url,
        "GATEWAY_KEY": stack.gateway.key,
        "ADMIN_KEY": stack.gateway.admin_key,
        "MOCK_URL": stack.mock.url,
        "DIALECTS_URL": stack.dialects.url,
        "DIALECTS_KEY": stack.dialects.key,
    }
    command = ["node", "--test", "--test-reporter=spec", *map(str, sorted(HERE.glob("node/*.test.js")))]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main(words):
    # A proxy of the machine's must not stand between the clients and this machine.
    os.environ.update(NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="switchyard-sdk-") as folder, Stack(Path(folder)) as stack:
        Case.stack = stack
        node = None if words else start_node_tests(stack)
        try:
            passed = python_tests(words)
            if node:
                output, _ = node.communicate(timeout=60)
                print(output)
                passed = passed and node.returncode == 0
        finally:
            if node:
                node.kill()
        if not passed:
            stack.show_logs()
    print(f"    client SDKs: {'ok' if passed else 'FAILED'} after {time.monotonic() - began:.1f} s")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
