/** Publishes this host's reports about its revisions in a ConfigMap. */
import type { ConfigMap } from '../../api/generated/core/v1.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { ApiClient } from '../../client/types.ts';
import type { NodeReport } from './core/index.ts';
import type { Operand } from './port.ts';
import { reportMap } from './revision-objects.ts';

const SETTLE_MS = 200;
const RETRY_MS = 1_000;

export class RevisionReporter {
  readonly #options: {
    readonly client: ApiClient;
    readonly node: string;
    readonly clock: Clock;
    readonly log: Log;
  };
  readonly #reports = new Map<Operand, NodeReport>();
  #published: ConfigMap['data'];
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: {
    readonly client: ApiClient;
    readonly node: string;
    readonly clock: Clock;
    readonly log: Log;
  }) {
    this.#options = options;
  }

  report(operand: Operand, report: NodeReport): void {
    if (semanticEqual(this.#reports.get(operand), report)) return;
    this.#reports.set(operand, report);
    this.#schedule(SETTLE_MS);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#work;
  }

  #schedule(delayMs: number): void {
    if (this.#isStopped) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => {
      this.#work = this.#publish();
    });
  }

  async #publish(): Promise<void> {
    const { client, node, log } = this.#options;
    const map = reportMap(node, this.#reports);
    if (semanticEqual(map.data, this.#published)) return;
    const maps = client.resource(resources.configMaps);
    try {
      await maps.create(map).catch(async (error: unknown) => {
        if (!isApiError(error, 'AlreadyExists')) throw error;
        await maps.patch(map.metadata?.name ?? '', map.metadata?.namespace, 'merge', {
          metadata: { labels: map.metadata?.labels },
          data: map.data,
        });
      });
      this.#published = map.data;
    } catch (error) {
      log.v(2, 'revisions of this host not published; retrying', { error: messageOf(error) });
      this.#schedule(RETRY_MS);
    }
  }
}
