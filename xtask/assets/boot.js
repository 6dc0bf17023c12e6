// Loads the dashboard's code and takes over the page that the server rendered.
import init, { hydrate } from "./app.js";

init().then(hydrate);
