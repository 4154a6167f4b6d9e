"""send.py HOST PORT COUNT TAG: events through fluent-logger, Message mode with EventTime, no answers."""
import sys

from fluent import sender

host, port, count, tag = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
s = sender.FluentSender(tag, host=host, port=port, nanosecond_precision=True)
for i in range(count):
    if not s.emit(None, {"message": f"m {i} é", "n": i}):
        raise SystemExit(s.last_error)
s.close()
