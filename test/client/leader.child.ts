/** A candidate that writes a config map every 20 ms in a loop that never checks whether it still leads. */
import { text } from 'node:stream/consumers';
import { resources } from '../../src/api/resources.ts';
import { silentLog } from '../../src/base/log.ts';
import { createApiClient, createLeaderElector } from '../../src/client/index.ts';
import { seededRandom, systemClock } from './clocks.ts';

const [, , name = '', server = ''] = process.argv;
const client = createApiClient({
  server,
  ca: await text(process.stdin),
  userAgent: name,
  log: silentLog,
  clock: systemClock,
});
const elector = createLeaderElector({
  client,
  namespace: 'n',
  name: 'lock',
  identity: name,
  clock: systemClock,
  random: seededRandom(name.charCodeAt(0)),
  log: silentLog,
  leaseDurationMs: 3_000,
  renewDeadlineMs: 2_000,
  retryPeriodMs: 400,
});
const maps = client.fenced(elector.fence).resource(resources.configMaps);
setInterval(() => {
  maps.create({ metadata: { namespace: `by-${name}`, name: 'x' } }).catch(() => {});
}, 20);
await elector.run(() => new Promise(() => {}));
