/** Restarts control-plane components of a host, including the API server that serves the console. */
import { ApiError } from '../../../api/meta/status.ts';
import { type Decoded, decode, list, object, optional, text } from '../../../base/decode.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { sleep } from '../../../base/time/sleep.ts';
import { type Api, hostPath } from '../api/api.ts';
import { LineSplitter } from '../watch/lines.ts';

export const COMPONENT_LABELS: Readonly<Record<string, string>> = {
  api: 'API server',
  controllers: 'controllers',
  etcd: 'store member',
};

const RESTART = object({
  id: text,
  component: text,
  startedAt: text,
  endedAt: optional(text),
  error: optional(text),
});
const REPORT = object({ components: list(text), current: optional(RESTART), last: optional(RESTART) });
const LINE = object({ id: optional(text), result: optional(RESTART), error: optional(text) });

export type RestartReport = Decoded<typeof REPORT>;
type Restart = Decoded<typeof RESTART>;

export interface RestartContext {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  onProgress(text: string): void;
}

const POLL_MS = 1_000;
/** Time limit for a restart, longer than that of the host. */
const LIMIT_MS = 400_000;
/** Maximum number of reports that do not contain the restart. After these, the restart counts as not started. */
const MAX_ABSENT = 3;
const MAX_LINE = 16_384;

const PATH = '/hyperedge/restart';

export const restartCommand = (component: string): string => `hyperedge master-restart ${component}`;

export const readRestarts = async (api: Api, node: string, signal: AbortSignal): Promise<RestartReport> =>
  decode(REPORT, await api.hostJson<unknown>(node, PATH, { signal }), `restarts on ${node}`);

/**
 * Restarts a component and resolves when the component is ready. If the connection breaks, the outcome is read from the
 * host as soon as an API server responds again. Throws the host's reason if the component does not become ready.
 */
export async function restartComponent(node: string, component: string, context: RestartContext): Promise<void> {
  const { api, signal, onProgress } = context;
  const before = await readRestarts(api, node, signal);
  onProgress('The component is being restarted.');
  const known = { id: '' };
  let outcome = await requested(node, component, context, known);
  if (outcome === undefined) {
    onProgress('The connection has ended. The outcome is read when the API server answers again.');
    outcome = await outcomeOf(node, component, context, (restart) =>
      known.id === ''
        ? restart.component === component && restart.id !== before.last?.id && restart.id !== before.current?.id
        : restart.id === known.id,
    );
  }
  if (outcome.error !== undefined) throw new Error(outcome.error);
}

/**
 * Requests the restart and sets its ID in `known` as soon as the host reports it. Resolves with the outcome; undefined
 * if the connection breaks before.
 */
async function requested(
  node: string,
  component: string,
  { api, signal }: RestartContext,
  known: { id: string },
): Promise<{ readonly error?: string | undefined } | undefined> {
  const lines = new LineSplitter(MAX_LINE, 'fail');
  try {
    const query = `?${new URLSearchParams({ component }).toString()}`;
    const response = await api.open(hostPath(node, PATH + query), { method: 'POST', signal });
    for (const reader = response.body?.getReader(); reader !== undefined; ) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      for (const line of lines.push(value)) {
        const { id, result, error } = decode(LINE, JSON.parse(line), 'line of the host');
        if (id !== undefined) known.id = id;
        if (error !== undefined || result !== undefined) return { error };
      }
    }
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (known.id === '' && error instanceof ApiError && error.reason !== 'ServiceUnavailable') throw error;
    return undefined;
  }
}

async function outcomeOf(
  node: string,
  component: string,
  { api, clock, signal, onProgress }: RestartContext,
  isOurs: (restart: Restart) => boolean,
): Promise<Restart> {
  const endMs = clock.monotonicMs() + LIMIT_MS;
  let absent = 0;
  let problem = '';
  while (clock.monotonicMs() < endMs) {
    try {
      const { current, last } = await readRestarts(api, node, signal);
      if (last !== undefined && isOurs(last)) return last;
      const isRunning = current !== undefined && isOurs(current);
      absent = isRunning ? 0 : absent + 1;
      if (absent >= MAX_ABSENT)
        throw new Unknown(`${node} has no outcome of the restart of ${component}; see the components on the host`);
      if (isRunning) onProgress('The API server answers. The component is not ready yet.');
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Unknown) throw error;
      problem = messageOf(error);
      onProgress(`Waiting for the API server: ${problem}`);
    }
    await sleep(clock, POLL_MS, signal);
  }
  throw new Error(`the outcome of the restart of ${component} is unknown: ${problem}`);
}

class Unknown extends Error {}
