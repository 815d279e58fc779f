import { CodedError } from '../../base/errors.ts';
import type { Engine } from '../replication/engine.ts';
import type { EtcdServerDeps } from '../server/server-port.ts';
import { wasReplaced } from './bootstrap.ts';
import { wipedError } from './join.ts';
import { removalPersisted } from './member-removal.ts';

/** Minimum time before a removed member stops, as in etcd. */
const REMOVED_STAYS_MS = 1000;

/** Stops this member after its removal from the cluster. */
export class Removal {
  readonly #deps: EtcdServerDeps;
  readonly #engine: Engine;
  readonly #stopped: () => boolean;
  #leaving: Promise<void> | undefined;
  #reported = false;

  constructor(deps: EtcdServerDeps, engine: Engine, stopped: () => boolean) {
    this.#deps = deps;
    this.#engine = engine;
    this.#stopped = stopped;
  }

  /**
   * For a member that was removed before it started: resolves when the removal is committed, or this member is stopped.
   */
  async atStart(): Promise<void> {
    this.#leaving = this.#persisted();
    await this.#leaving;
  }

  /**
   * Stops this member when the removal is committed, but not before a client that requested the removal here has its
   * response.
   */
  start(): void {
    const { clock, onFatal } = this.#deps;
    this.#leaving ??= new Promise<void>((resolve) => clock.setTimer(REMOVED_STAYS_MS, resolve))
      .then(() => this.#persisted())
      .then(() => {
        if (!this.#stopped()) onFatal(removedError());
      });
  }

  /**
   * Handles a report of another member that this member was removed. The report may concern an outdated ID: a founding
   * member derives its ID from its URLs, even if the cluster has given it another ID since.
   */
  async reportedByPeer(): Promise<void> {
    const { name, peerUrls = [], initialCluster, peers, clock, onFatal } = this.#deps;
    if (this.#reported) return;
    this.#reported = true;
    const isNew = this.#engine.replica.raft.status().lastIndex <= 1;
    const founds = isNew && initialCluster !== undefined && !initialCluster.existing;
    const query = { name, peerUrls, dial: peers?.dial, clock, stopped: this.#stopped };
    // The leader removed this member because it was silent while joining. This member has never voted, so it joins
    // again without data.
    const joins = initialCluster?.joins === true && this.#engine.cluster.get(this.#engine.replica.id)?.joining === true;
    if (joins || (founds && (await wasReplaced(initialCluster, query)))) onFatal(wipedError(name));
    else if (!this.#stopped()) this.start();
  }

  #persisted(): Promise<void> {
    const { peers, clock, log } = this.#deps;
    const { cluster, replica } = this.#engine;
    const members = (): typeof cluster.members => cluster.members;
    return removalPersisted({ id: replica.id, dial: peers?.dial, clock, log, members, stopped: this.#stopped });
  }
}

export function removedError(): CodedError {
  return new CodedError(
    'removed',
    'this member has been permanently removed from the cluster; to add this host again, empty its data directory and run "hyperedge members add" on another member',
  );
}
