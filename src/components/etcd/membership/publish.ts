import type { Clock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Engine } from '../replication/engine.ts';
import type { Command } from '../replication/entry-codec.ts';

export interface AnnouncementDeps {
  readonly engine: Engine;
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly command: (command: Command) => Promise<void>;
  readonly stopped: () => boolean;
}

const PUBLISH_RETRY_MS = 1000;

/** Tells the cluster how this member is called and where its clients find it. Resolves with whether it knows: false when this member was stopped first. */
export async function announce({
  engine,
  name,
  clientUrls,
  clock,
  log,
  command,
  stopped,
}: AnnouncementDeps): Promise<boolean> {
  const { replica, cluster } = engine;
  // Whoever has a name has something on its disk: an empty one is a disk that has been wiped, and not one that was never written.
  await engine.appliedAt(2);
  for (;;) {
    if (stopped()) return false;
    const known = cluster.get(replica.id);
    if (known?.name === name && known.clientUrls.join() === clientUrls.join()) return true;
    try {
      await command({ type: 'attributes', member: replica.id, name, clientUrls });
    } catch (error) {
      if (!stopped()) log.v(2, 'this member could not be announced yet', { cause: messageOf(error) });
      await new Promise<void>((resolve) => clock.setTimer(PUBLISH_RETRY_MS, resolve));
    }
  }
}
