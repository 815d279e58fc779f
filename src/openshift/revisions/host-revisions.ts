/**
 * Manages the revisions of a master: runs an installer for each component, and takes part in planning as
 * RevisionLeader.
 */

import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { checkReady } from '../../client/index.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../client/types.ts';
import { keepLimit, type NodeReport } from './core/index.ts';
import { RevisionInstaller, type Target } from './installer.ts';
import { RevisionLeader } from './leader.ts';
import type { Operand, OperandFiles, OperandProcess } from './port.ts';
import { RevisionReporter } from './reporter.ts';
import { createTurn } from './turn.ts';

export interface HostRevisionsOptions {
  readonly node: string;
  readonly files: ReadonlyMap<Operand, OperandFiles>;
  /** Provides access to a component's running process. Called only after the kubelet has been created. */
  readonly process: (operand: Operand) => OperandProcess;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RevisionsApi {
  readonly client: ApiClient;
  readonly informers: InformerFactory;
  readonly exclusively: (work: (client: ApiClient) => Promise<void>) => Promise<void>;
  readonly image: string;
  readonly recorder: EventRecorder;
}

export class HostRevisions {
  readonly #options: HostRevisionsOptions;
  readonly #installers: ReadonlyMap<Operand, RevisionInstaller>;
  readonly #reports = new Map<Operand, NodeReport>();
  #leader: RevisionLeader | undefined;
  #reporter: RevisionReporter | undefined;
  #awaySinceMs: number | undefined;
  #requestedMs = 0;
  #api: RevisionsApi | undefined;

  constructor(options: HostRevisionsOptions) {
    this.#options = options;
    const { files, clock, log, process } = options;
    const turn = createTurn(() => this.#kick());
    this.#installers = new Map(
      [...files].map(([operand, each]) => [
        operand,
        new RevisionInstaller({
          operand,
          files: each,
          process: process(operand),
          target: () => this.#target(operand),
          apiAwayMs: () => this.#apiAwayMs(),
          turn,
          reported: (report) => {
            this.#reports.set(operand, report);
            this.#reporter?.report(operand, report);
          },
          clock,
          log,
        }),
      ]),
    );
  }

  /**
   * Called before the kubelet starts the components. `running` contains the components that already run. The scheduler
   * is prepared after the controller manager, because both use the same directory and manifest.
   */
  async prepare(running: ReadonlySet<Operand>): Promise<void> {
    const prepared = new Map<Operand, Promise<void>>();
    for (const [operand, each] of this.#installers) {
      const before = operand === 'kube-scheduler' ? prepared.get('kube-controller-manager') : undefined;
      prepared.set(
        operand,
        Promise.resolve(before).then(() => each.prepare(running.has(operand))),
      );
    }
    await Promise.all(prepared.values());
  }

  start(api: RevisionsApi): void {
    const { node, clock, log } = this.#options;
    this.#api = api;
    this.#reporter = new RevisionReporter({ client: api.client, node, clock, log });
    for (const [operand, report] of this.#reports) this.#reporter.report(operand, report);
    this.#leader = new RevisionLeader({ ...api, host: node, changed: () => this.#kick(), clock, log });
    for (const each of this.#installers.values()) each.start();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#installers.values()].map((each) => each.stop()));
    await Promise.all([this.#leader?.stop(), this.#reporter?.stop()]);
  }

  /**
   * Installs changed files of these components as a new revision. Called before a requested restart of the components.
   */
  async adoptNow(operands: readonly Operand[]): Promise<void> {
    for (const each of operands) await this.#installers.get(each)?.adoptNow();
  }

  #kick(): void {
    for (const each of this.#installers.values()) each.kick();
  }

  #target(operand: Operand): Target | undefined {
    const operator = this.#leader?.operator(operand);
    const status = operator?.status?.nodeStatuses?.find(({ nodeName }) => nodeName === this.#options.node);
    const revision = status?.targetRevision ?? 0;
    const { failedRevisionLimit, succeededRevisionLimit } = operator?.spec ?? {};
    const published = this.#leader?.revision(operand, revision);
    if (status === undefined || published === undefined) return undefined;
    return {
      revision,
      overlay: published.overlay,
      reason: published.reason,
      knownFailures: status.lastFailedRevision === revision ? (status.lastFailedCount ?? 0) : 0,
      keepFailed: keepLimit(failedRevisionLimit),
      keepSucceeded: keepLimit(succeededRevisionLimit),
    };
  }

  /**
   * Time for which no API server has responded. The request runs in the background, so the result is that of the
   * previous request.
   */
  #apiAwayMs(): number {
    const { clock } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#requestedMs > REQUEST_TIMEOUT_MS) {
      // After a pause in the requests, the start of the outage is unknown.
      if (nowMs - this.#requestedMs > 4 * REQUEST_TIMEOUT_MS) this.#awaySinceMs = undefined;
      this.#requestedMs = nowMs;
      const client = this.#api?.client;
      const answered =
        client === undefined
          ? Promise.reject(new Error('not started'))
          : checkReady(client, AbortSignal.timeout(REQUEST_TIMEOUT_MS));
      answered.then(
        () => {
          this.#awaySinceMs = undefined;
        },
        () => {
          this.#awaySinceMs ??= nowMs;
        },
      );
    }
    return this.#awaySinceMs === undefined ? 0 : nowMs - this.#awaySinceMs;
  }
}

const REQUEST_TIMEOUT_MS = 4_000;
