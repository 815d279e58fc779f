/**
 * Reports the end of this member's log, which is used to select among the survivors of a cluster. Served without a
 * quorum.
 */

import type { Log } from '../../base/log.ts';
import { Writer } from '../../wire/protobuf/protobuf.ts';
import type { StoreLog } from '../disk/port.ts';
import type { Engine } from '../replication/engine.ts';
import type { UnaryHandlers } from './kv-service.ts';
import { answerUnary } from './rpc-errors.ts';

export function recoveryService(engine: Engine, storage: StoreLog, log: Log): UnaryHandlers {
  return {
    '/hyperedge.Recovery/LogEnd': (_message, call) =>
      answerUnary(call, log, async () => {
        const { replica, machine, cluster } = engine;
        const { lastIndex, commit } = replica.raft.status();
        let lastRevision = machine.visible;
        for (let from = commit + 1; from <= lastIndex; ) {
          const entries = await storage.entries(from, 1 << 20);
          for (const { revision } of entries) lastRevision = Math.max(lastRevision, revision);
          from = (entries.at(-1)?.index ?? lastIndex) + 1;
        }
        return new Writer(128)
          .string(1, replica.id)
          .string(2, cluster.get(replica.id)?.name ?? '')
          .int(3, replica.term)
          .int(4, lastIndex)
          .int(5, replica.raft.termAt(lastIndex) ?? 0)
          .int(6, commit)
          .int(7, machine.visible)
          .int(8, lastRevision)
          .finish();
      }),
  };
}
