import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Engine } from '../replication/engine.ts';
import type { Command } from '../replication/peers/entry-codec.ts';

export interface PublishDeps {
  readonly engine: Engine;
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly command: (command: Command) => Promise<void>;
  readonly stopped: () => boolean;
}

const PUBLISH_RETRY_MS = 1000;

/**
 * Publishes this member's name and client URLs to the cluster. Resolves with false when this member was stopped before.
 */
export async function publishMember({
  engine,
  name,
  clientUrls,
  clock,
  log,
  command,
  stopped,
}: PublishDeps): Promise<boolean> {
  const { replica, cluster } = engine;
  // A published name implies a written log, so an empty data directory afterwards was wiped and is not a first start.
  await engine.appliedAt(2);
  for (;;) {
    if (stopped()) return false;
    const known = cluster.get(replica.id);
    if (known?.name === name && known.clientUrls.join() === clientUrls.join()) return true;
    try {
      await command({ type: 'attributes', member: replica.id, name, clientUrls });
    } catch (error) {
      if (!stopped()) log.v(2, 'publishing this member failed; retrying', { cause: messageOf(error) });
      await new Promise<void>((resolve) => clock.setTimer(PUBLISH_RETRY_MS, resolve));
    }
  }
}
