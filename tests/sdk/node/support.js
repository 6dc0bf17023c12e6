// What the test files share. The gateway and the mock are there already: main.py has started them.
import OpenAI from "openai";

const { GATEWAY_URL, GATEWAY_KEY, ADMIN_KEY, MOCK_URL } = process.env;

export const HELLO = [{ role: "user", content: "Hello" }];

export const clientOf = (apiKey = GATEWAY_KEY) =>
  new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey, maxRetries: 0, timeout: 20_000 });

/** A model of this test's own: what it scripts at the mock, and what it sees there, is nobody else's. */
export const modelOf = (test) => `node ${test.name}`;

async function call(url, options = {}) {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? undefined : response.json();
}

const post = (url, body) => call(url, { method: "POST", body: JSON.stringify(body) });

export const script = (model, ...replies) => post(`${MOCK_URL}/_script`, { match: { model }, replies });

export const release = (gate) => post(`${MOCK_URL}/_release`, { gate });

export async function seen(model) {
  const requests = await call(`${MOCK_URL}/_requests`);
  return requests.filter((request) => request.json?.model === model);
}

export async function rows(model) {
  const url = `${GATEWAY_URL}/admin/logs?model=${encodeURIComponent(model)}`;
  const { data } = await call(url, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  return data;
}

/** Asks again and again until the answer is something. */
export async function eventually(probe) {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; ) {
    const found = await probe();
    if (found) return found;
  }
  throw new Error(`nothing came: ${probe}`);
}
