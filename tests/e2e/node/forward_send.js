// Sends events by @fluent-org/logger and asks for acknowledgements. What is not acknowledged is sent again, until it is. The number of each event
// that was acknowledged is written to a file, a line each, at once.
//
// forward_send.js OPTIONS   (JSON: client, for FluentClient; prefix, count, acked: the file)

const fs = require("fs");
const { FluentClient } = require("@fluent-org/logger");

const options = JSON.parse(process.argv[2]);
if (options.client.socket.ca) {
  options.client.socket.tls = { ca: fs.readFileSync(options.client.socket.ca), servername: "localhost" };
}
const acked = fs.openSync(options.acked, "a");
const client = new FluentClient("app", options.client);
client.socketOn("error", () => {});

const together = 500;

async function sendAll() {
  let failures = 0;
  for (let from = 0; from < options.count; from += together) {
    let numbers = Array.from({ length: Math.min(together, options.count - from) }, (_, n) => from + n);
    while (numbers.length > 0) {
      const sent = numbers.map((n) =>
        client.emit("events", { log: `${options.prefix}-${String(n).padStart(8, "0")} the quick brown fox`, n }),
      );
      const outcomes = await Promise.allSettled(sent);
      const taken = numbers.filter((_, at) => outcomes[at].status === "fulfilled");
      if (taken.length > 0) fs.writeSync(acked, taken.map((n) => `${n}\n`).join(""));
      numbers = numbers.filter((_, at) => outcomes[at].status !== "fulfilled");
      failures += numbers.length;
    }
  }
  console.log(`${options.count} acknowledged; ${failures} times an event was sent again`);
  await client.disconnect();
}

sendAll().catch((error) => {
  console.error(error);
  process.exit(1);
});
