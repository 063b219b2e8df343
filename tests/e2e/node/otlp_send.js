// Sends log records by the SDK of OpenTelemetry. What its exporter gives up is exported again, until it is taken; the number of each record that was
// acknowledged is written to a file, a line each, at once.
//
// otlp_send.js OPTIONS   (JSON: protocol, one of grpc, proto and http; port, prefix, count, acked: the file)

const fs = require("fs");
const { BatchLogRecordProcessor, LoggerProvider } = require("@opentelemetry/sdk-logs");
const { resourceFromAttributes } = require("@opentelemetry/resources");

const options = JSON.parse(process.argv[2]);
const acked = fs.openSync(options.acked, "a");
const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${options.protocol}`);
const path = options.protocol === "grpc" ? "" : "/v1/logs";
const exporter = new OTLPLogExporter({ url: `http://127.0.0.1:${options.port}${path}`, timeoutMillis: 10000 });

let again = 0;
let taken = 0;
let allTaken;
const done = new Promise((resolve) => (allTaken = resolve));

// Behind the exporter's own retries: a batch is not given up.
const untilTaken = {
  export(records, answer) {
    const attempt = () =>
      exporter.export(records, (result) => {
        if (result.code !== 0) {
          again += 1;
          setTimeout(attempt, 100);
          return;
        }
        fs.writeSync(acked, records.map((record) => `${record.attributes.n}\n`).join(""));
        taken += records.length;
        if (taken === options.count) allTaken();
        answer(result);
      });
    attempt();
  },
  forceFlush: () => exporter.forceFlush(),
  shutdown: () => exporter.shutdown(),
};

const processor = new BatchLogRecordProcessor({
  exporter: untilTaken,
  maxExportBatchSize: 1000,
  maxQueueSize: options.count + 1,
  scheduledDelayMillis: 20,
  exportTimeoutMillis: 3600000,
});
const provider = new LoggerProvider({
  resource: resourceFromAttributes({ "service.name": "shop" }),
  processors: [processor],
});
const logger = provider.getLogger("e2e", "1.0");
for (let n = 0; n < options.count; n++) {
  logger.emit({
    severityNumber: 9,
    severityText: "INFO",
    body: `${options.prefix}-${String(n).padStart(8, "0")} the quick brown fox`,
    attributes: { n, half: n / 2, even: n % 2 === 0, words: ["a", "é"] },
  });
}
done.then(async () => {
  console.log(`sent ${options.count}; ${again} times a batch was exported again`);
  await provider.shutdown();
});
