import type { NodeId } from '../../core/raft/index.ts';
import type { SnapshotHead } from '../../disk/port.ts';

export interface SnapshotTransfer {
  /** Sends `to` a snapshot of at least `index`. */
  stream(to: NodeId, index: number): void;
  /** Takes the complete received snapshot of `index`. */
  take(index: number): { readonly id: string; readonly head: SnapshotHead };
}
