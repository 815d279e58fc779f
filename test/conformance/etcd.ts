/**
 * Conformance suite for etcd's v3 API over gRPC. Debian's etcd, `hyperedge etcd` and clusters of it must pass it. Where
 * they differ, etcd is right.
 */
import { after, before, describe } from 'node:test';
import { type EtcdSuite, Subject } from './etcd/cluster.ts';
import { kvConformance } from './etcd/kv.ts';
import { leaseConformance } from './etcd/lease.ts';
import { maintenanceConformance } from './etcd/maintenance.ts';
import { sessionConformance } from './etcd/sessions.ts';
import { txnConformance } from './etcd/txn.ts';
import { watchConformance } from './etcd/watch.ts';

const PARTS = {
  KV: kvConformance,
  Txn: txnConformance,
  Lease: leaseConformance,
  Watch: watchConformance,
  'Lock and Election': sessionConformance,
  'Maintenance and Cluster': maintenanceConformance,
};

export function etcdConformance(suite: EtcdSuite): void {
  describe(`etcd v3: ${suite.name}`, () => {
    let subject: Subject | undefined;
    before(async () => {
      subject = new Subject(await suite.start());
    });
    after(() => subject?.stop());
    for (const [name, declare] of Object.entries(PARTS)) {
      describe(name, () =>
        declare(() => {
          if (subject === undefined) throw new Error('not started');
          return subject;
        }),
      );
    }
  });
}
