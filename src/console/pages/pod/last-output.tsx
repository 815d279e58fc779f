/** Last lines of a run that failed, below the explanation of the failure. */
import type { Pod } from '../../../api/generated/core/v1.ts';
import type { LogRun } from '../../data/pods/failed-runs.ts';
import { lastLines } from '../../data/pods/logs.ts';
import { api } from '../../ui/context.ts';
import { usePoll } from '../../ui/hooks.ts';

const REFRESH_MS = 15_000;
const LINES = 10;

interface LastOutputProps {
  readonly pod: Pod;
  readonly run: LogRun;
  readonly onLogs: (run: LogRun) => void;
}

export function LastOutput({ pod, run, onLogs }: LastOutputProps) {
  const { namespace = '', name = '', uid = '' } = pod.metadata ?? {};
  const { container, isPrevious } = run;
  const target = { namespace, pod: name, container, previous: isPrevious };
  const key = [uid, container, isPrevious].join();
  const lines = usePoll((signal) => lastLines(api, target, LINES, signal), REFRESH_MS, key);
  if (lines === undefined) return null;
  return (
    <section aria-label={`Last output of ${container}`}>
      <h2>Last output of container {container} before it ended</h2>
      {lines.length === 0 ? <p class="muted">It wrote nothing.</p> : <pre class="wrap">{lines.join('\n')}</pre>}
      <button type="button" onClick={() => onLogs(run)}>
        Show the whole log<span class="hidden"> of {container}</span>
      </button>
    </section>
  );
}
