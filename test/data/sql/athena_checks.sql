SELECT
  dt,
  hr,
  COUNT(*) AS cnt,
  MIN(ts) AS min_ts,
  MAX(ts) AS max_ts
FROM logs.syslog_events
GROUP BY dt, hr
ORDER BY dt DESC, hr DESC
LIMIT 24;

SELECT host, program, COUNT(*) AS cnt
FROM logs.authlog_events
WHERE dt = current_date
GROUP BY host, program
ORDER BY cnt DESC;
