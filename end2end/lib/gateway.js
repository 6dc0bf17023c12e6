// The real binary with an empty database, and its API as any other client sees it.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const BUILT = fileURLToPath(new URL("../../target/debug/switchyard", import.meta.url));
const PATIENCE = 20_000;

/** Asks again and again until the answer is something. */
export async function eventually(probe, what, patience = PATIENCE) {
  for (const deadline = Date.now() + patience; Date.now() < deadline; ) {
    const found = await probe();
    if (found) return found;
  }
  throw new Error(`in ${patience} ms there was no ${what}`);
}

export class Gateway {
  #process;
  #folder;
  #errors = "";
  #sessions = new Map();
  #traffic;

  static async start() {
    const gateway = new Gateway();
    gateway.#folder = await mkdtemp(path.join(tmpdir(), "switchyard-end2end-"));
    // Nothing of this shell's: with a credential in it the gateway would not be the simulated one.
    const env = { PATH: process.env.PATH, DATA_DIR: gateway.#folder, HOST: "127.0.0.1", PORT: "0" };
    const program = path.resolve(process.env.SWITCHYARD_BIN ?? BUILT);
    gateway.#process = spawn(program, { env, cwd: gateway.#folder, stdio: ["ignore", "ignore", "pipe"] });
    process.once("exit", () => gateway.#process.kill("SIGKILL"));
    await gateway.#greeting();
    await eventually(() => gateway.#ready(), "readiness");
    return gateway;
  }

  /** The first start says the address and the first key, once. */
  #greeting() {
    return new Promise((resolve, reject) => {
      this.#process.once("error", reject);
      this.#process.once("exit", () => reject(new Error(`the gateway ended at once:\n${this.#errors}`)));
      this.#process.stderr.setEncoding("utf8").on("data", (text) => {
        this.#errors += text;
        const said = this.#errors.match(/Switchyard is at (http:\/\/[^/\s]+)[^]*?(sy_[\w-]{43})/);
        if (said) {
          [, this.url, this.firstKey] = said;
          resolve();
        }
      });
    });
  }

  #ready() {
    return fetch(`${this.url}/readyz`).then(
      (response) => response.ok,
      () => false,
    );
  }

  async stop() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGKILL");
    await ended;
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Any call; a failed one is an answer too. */
  fetch(route, { key = this.firstKey, body, ...options } = {}) {
    const headers = { authorization: `Bearer ${key}`, ...options.headers };
    const json = body && { method: "POST", body: JSON.stringify(body) };
    return fetch(this.url + route, { ...json, ...options, headers });
  }

  async json(route, options) {
    const response = await this.fetch(route, options);
    if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
    return response.json();
  }

  /** A new key: `{id, name, key}`. */
  createKey(name, scopes = ["invoke"]) {
    return this.json("/admin/keys", { body: { name, scopes } });
  }

  /** A chat with the simulated provider; returns the request's id when its record is there. */
  chat(model, { key, content = "Hello", ...more } = {}) {
    const body = { model, messages: [{ role: "user", content }], max_tokens: 4, ...more };
    return this.call("/v1/chat/completions", { key, body });
  }

  /** A call in any dialect; returns the request's id when its record is there. */
  async call(route, options) {
    const response = await this.fetch(route, options);
    await response.text();
    const id = response.headers.get("x-request-id");
    await this.log(id);
    return id;
  }

  /** The record of a request, once it is written. */
  log(id) {
    const read = async () => {
      const response = await this.fetch(`/admin/logs/${id}`);
      return response.ok && response.json();
    };
    return eventually(read, `record of ${id}`);
  }

  /** Some requests to look at, made once: the ids of one that was answered, one that failed, one that was cut, and one
   * that was translated with a loss. */
  traffic() {
    const messages = { model: "demo", messages: [{ role: "user", content: "Hello" }], max_tokens: 4, top_k: 40 };
    this.#traffic ??= Promise.all([
      this.chat("demo", { stream: true }),
      this.chat("demo-429"),
      this.chat("demo-cut", { stream: true, max_tokens: 64 }),
      this.call("/v1/messages", { body: messages }),
    ]).then(([answered, failed, cut, translated]) => ({ answered, failed, cut, translated }));
    return this.#traffic;
  }

  /** A browser's state with a session of these scopes. Kept, because signing in is throttled for each address. */
  async session(scope) {
    if (!this.#sessions.has(scope)) {
      const { key } = scope === "admin" ? { key: this.firstKey } : await this.createKey(`${scope} session`, [scope]);
      const response = await fetch(`${this.url}/admin/session`, {
        method: "POST",
        redirect: "manual",
        body: new URLSearchParams({ key }),
      });
      const [, name, value] = response.headers.get("set-cookie").match(/^([^=]+)=([^;]+)/);
      const here = { domain: "127.0.0.1", path: "/", expires: -1 };
      const cookie = { name, value, ...here, httpOnly: true, secure: false, sameSite: "Strict" };
      this.#sessions.set(scope, { cookies: [cookie], origins: [] });
    }
    return this.#sessions.get(scope);
  }
}
