/** Copies the log lines of the host process for log forwarding. The number of waiting lines is bounded. */
import type { LogSink } from '../../base/log.ts';
import { severityOf } from '../../logging/core/log-names.ts';
import type { LogRecord } from '../../logging/port.ts';

export interface LogTap {
  /** Writes to `next`, and keeps a copy of each line. */
  sink(next: LogSink): LogSink;
  /** Returns and removes the kept lines, and the number of lines that were not kept. */
  take(): { readonly records: readonly LogRecord[]; readonly dropped: number };
}

const MAX_LINES = 2_000;
const MAX_LENGTH = 32 * 1024;

export function createLogTap(nowMs: () => number): LogTap {
  let records: LogRecord[] = [];
  let dropped = 0;
  return {
    sink: (next) => ({
      write: (line) => {
        next.write(line);
        if (records.length < MAX_LINES) records.push(recordOf(line, nowMs()));
        else dropped += 1;
      },
    }),
    take: () => {
      const taken = { records, dropped };
      records = [];
      dropped = 0;
      return taken;
    },
  };
}

/** Discards everything. For hosts that do not forward logs. */
export const noLogTap: LogTap = { sink: (next) => next, take: () => ({ records: [], dropped: 0 }) };

function recordOf(line: string, nowMs: number): LogRecord {
  const [, time] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) /.exec(line) ?? [];
  return {
    time: time ?? new Date(nowMs).toISOString(),
    text: line.slice(0, MAX_LENGTH).toWellFormed(),
    severity: severityOf(line),
    ...{ stream: '', namespace: '', pod: '', uid: '', container: '', component: 'host' },
  };
}
