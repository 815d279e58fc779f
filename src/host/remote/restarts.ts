/**
 * Restarts of control-plane components that are requested over the network. One component is restarted at a time. The
 * outcome is stored, because the restart of an API server or of the store can interrupt the connection of the client
 * that waits for it.
 */
import { randomBytes } from 'node:crypto';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { ComponentRestart, RestartReport, StartedRestart } from '../../kubelet/ports/administration-port.ts';
import { parseSwitchRecord } from '../../openshift/updates/core/port.ts';

const MAX_ERROR = 2_000;

export interface RestartPlaces {
  /** Names of the components that run on this host. */
  readonly components: readonly string[];
  /** Resolves when the component is ready; rejects with the reason if it is not. */
  restart(component: string): Promise<void>;
  /** Resolves with a reason if no component may be restarted now; otherwise with undefined. */
  refusal(): Promise<string | undefined>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

export class RemoteRestarts {
  readonly #places: RestartPlaces;
  #isStarting = false;
  #current: ComponentRestart | undefined;
  #last: ComponentRestart | undefined;

  constructor(places: RestartPlaces) {
    this.#places = places;
  }

  report(): RestartReport {
    return {
      components: this.#places.components,
      ...(this.#current === undefined ? {} : { current: this.#current }),
      ...(this.#last === undefined ? {} : { last: this.#last }),
    };
  }

  /**
   * Starts a restart. The restart continues if the client disconnects. Throws CodedErrors only before the component is
   * stopped.
   */
  async start(component: string): Promise<StartedRestart> {
    const { components } = this.#places;
    if (components.length === 0)
      throw new CodedError('absent', 'this host has no component of the control plane; choose a master');
    if (!components.includes(component))
      throw new CodedError(
        'rejected',
        `component: ${JSON.stringify(component.slice(0, 64))} does not run on this host; use one of ${components.join(', ')}`,
      );
    const running = this.#current;
    if (running !== undefined || this.#isStarting)
      throw new CodedError('busy', `${running?.component ?? 'a component'} is being restarted; wait until it is ready`);
    this.#isStarting = true;
    try {
      const refusal = await this.#places.refusal();
      if (refusal !== undefined) throw new CodedError('conflict', refusal);
      const restart: ComponentRestart = { id: randomBytes(8).toString('hex'), component, startedAt: this.#now() };
      this.#current = restart;
      return { restart, ended: this.#run(restart) };
    } finally {
      this.#isStarting = false;
    }
  }

  async #run(restart: ComponentRestart): Promise<ComponentRestart> {
    const error = await this.#places.restart(restart.component).then(
      () => undefined,
      (reason: unknown) => messageOf(reason).slice(0, MAX_ERROR),
    );
    const ended = { ...restart, endedAt: this.#now(), ...(error === undefined ? {} : { error }) };
    this.#current = undefined;
    this.#last = ended;
    return ended;
  }

  #now(): string {
    return new Date(this.#places.clock.nowMs()).toISOString();
  }
}

/**
 * Reason to reject restarts while an update is in progress; undefined otherwise. An update is confirmed only if no
 * component restarts for a minute. Throws CodedError 'damaged' if the record of the update in `file` is damaged.
 */
export function updateInProgress(record: string | undefined, file: string): string | undefined {
  const { phase, to } = parseSwitchRecord(record, file) ?? {};
  if (phase !== 'trying' && phase !== 'rollingBack') return undefined;
  return `an update of this host to ${to} is in progress, which a restart can make fail; wait until it ends, or run hyperedge master-restart on the host`;
}
