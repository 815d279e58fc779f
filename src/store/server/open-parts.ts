import { CodedError } from '../../base/errors.ts';
import type { GossipLink } from '../replication/peers/gossip-link.ts';
import type { Peers } from '../replication/peers/peers.ts';
import type { Router } from '../replication/peers/router.ts';
import type { Encoder } from '../services/encode.ts';
import type { LeaseService } from '../services/lease-service.ts';
import type { WatchService } from '../watch/watch-service.ts';

/** Parts of a store that require its identity. `start` sets them once the log is open. */
export class OpenParts {
  encoder: Encoder | undefined;
  router: Router | undefined;
  /** Also undefined on a member without peers. */
  peers: Peers | undefined;
  watches: WatchService | undefined;
  leases: LeaseService | undefined;
  gossip: GossipLink | undefined;

  /** Throws CodedError 'closed' before the store is open. */
  get route(): Router {
    if (this.router === undefined) throw new CodedError('closed', 'the store is not open');
    return this.router;
  }

  /** Throws CodedError 'closed' on a member without peers. */
  get connectedPeers(): Peers {
    if (this.peers === undefined) throw new CodedError('closed', 'this member has no peers');
    return this.peers;
  }
}
