"""Sends log records by the SDK of OpenTelemetry. What its exporter gives up is exported again, until it is taken; the number of each record that was
acknowledged is written to a file, a line each, at once.

otlp_send.py PROTOCOL PORT PREFIX COUNT ACKED    (PROTOCOL is grpc or http)
"""

import logging
import sys
import time

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
from opentelemetry.sdk.resources import Resource

protocol, port, prefix, count, acked = sys.argv[1:]
count = int(count)
logging.disable(logging.CRITICAL)

if protocol == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter

    exporter = OTLPLogExporter(endpoint=f"http://127.0.0.1:{port}", insecure=True, timeout=10)
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    exporter = OTLPLogExporter(
        endpoint=f"http://127.0.0.1:{port}/v1/logs", timeout=10, compression=Compression.Gzip
    )

notes = open(acked, "a", buffering=1)
export = exporter.export
again = 0


def export_until_taken(batch):
    global again
    while export(batch) is not LogRecordExportResult.SUCCESS:
        again += 1
        time.sleep(0.1)
    notes.write("".join(f"{record.log_record.attributes['n']}\n" for record in batch))
    return LogRecordExportResult.SUCCESS


exporter.export = export_until_taken
provider = LoggerProvider(resource=Resource.create({"service.name": "shop"}))
processor = BatchLogRecordProcessor(
    exporter, schedule_delay_millis=50, max_export_batch_size=1000, max_queue_size=count + 1
)
provider.add_log_record_processor(processor)
logger = provider.get_logger("e2e", "1.0")
for n in range(count):
    logger.emit(
        LogRecord(
            timestamp=1_700_000_000_000_000_000 + n,
            severity_number=SeverityNumber.INFO,
            severity_text="INFO",
            body=f"{prefix}-{n:08} the quick brown fox",
            attributes={"n": n, "half": n / 2, "even": n % 2 == 0, "words": ["a", "é"]},
        )
    )
provider.force_flush(600_000)
provider.shutdown()
print(f"sent {count}; {again} times a batch was exported again")
