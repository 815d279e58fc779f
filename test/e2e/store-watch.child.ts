/**
 * Watches the store of a host over one connection. Prints `value` for each event and `ended` at the end of the watch.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { storeRevision } from '../../src/base/brand.ts';
import { silentLog } from '../../src/base/log.ts';
import { systemClock } from '../../src/host/process/process.ts';
import { createEtcdStore } from '../../src/store/client/etcd-store.ts';

const [root = '', prefix = ''] = process.argv.slice(2);
const read = (name: string): string => readFileSync(join(root, 'etc/origin/master', name), 'utf8');
let connections = 0;
const store = createEtcdStore({
  endpoints: ['https://127.0.0.1:2379'],
  materials: () => {
    connections += 1;
    if (connections > 1) console.log('reconnected');
    return {
      ca: read('master.etcd-ca.crt'),
      cert: read('master.etcd-client.crt'),
      key: read('master.etcd-client.key'),
    };
  },
  log: silentLog,
  clock: systemClock,
});
const { revision } = await store.get('/none');
store.watch(prefix, `${prefix}~`, storeRevision(revision + 1), {
  events: (events) => {
    for (const { kv } of events) console.log(kv.key);
  },
  progress: () => {},
  closed: () => console.log('ended'),
});
console.log('watching');
setInterval(() => {}, 1 << 30);
