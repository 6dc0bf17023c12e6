// What a browser says when a page is broken and still looks fine.

export class Complaints {
  #heard = [];
  #expected = [];

  constructor(context) {
    // A violated Content-Security-Policy and a hydration that did not find what it expected are errors here too.
    context.on("console", (message) => {
      if (message.type() === "error") this.#hear(`console: ${message.text()} (${message.location().url})`);
    });
    context.on("weberror", (error) => this.#hear(`exception: ${error.error().stack ?? error.error()}`));
    context.on("requestfailed", (request) => {
      const reason = request.failure()?.errorText;
      // Whoever leaves a page or presses Stop aborts what is under way.
      if (reason !== "net::ERR_ABORTED") this.#hear(`request: ${reason} ${request.url()}`);
    });
    context.on("response", (response) => {
      if (response.status() >= 500) this.#hear(`response: ${response.status()} ${response.url()}`);
    });
  }

  #hear(what) {
    this.#heard.push(what);
  }

  /** This test provokes it. */
  expect(pattern) {
    this.#expected.push(pattern);
  }

  unexpected() {
    return this.#heard.filter((what) => !this.#expected.some((pattern) => pattern.test(what)));
  }
}
