/** Copies the log lines of the host process for log forwarding. The number of stored lines is limited. */
import type { LogSink } from '../../base/log.ts';
import { severityOf } from '../../logging/core/log-names.ts';
import type { LogRecord } from '../../logging/port.ts';

export interface LogTap {
  /** Returns a sink that writes each line to `next` and stores a copy. */
  sink(next: LogSink): LogSink;
  /** Removes and returns the stored lines. `dropped`: number of lines that were lost because of the limit. */
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

/** Stores no lines. Used on hosts that do not forward logs. */
export const noLogTap: LogTap = { sink: (next) => next, take: () => ({ records: [], dropped: 0 }) };

function recordOf(line: string, nowMs: number): LogRecord {
  const [, time] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) /.exec(line) ?? [];
  return {
    time: time ?? new Date(nowMs).toISOString(),
    text: line.slice(0, MAX_LENGTH).toWellFormed(),
    severity: severityOf(line),
    stream: '',
    namespace: '',
    pod: '',
    uid: '',
    container: '',
    component: 'host',
  };
}
