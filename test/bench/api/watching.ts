/** Cost of watches: events to 300 of them, and memory of 5,000 idle ones. */
import { bareGets, FILLER, LIST, MARK_BARE, NAMESPACE, settled, type Target } from './target.ts';

interface Seen {
  readonly events: number;
  readonly atMs: number;
}

export async function measureWatches(target: Target, seconds: number): Promise<void> {
  await fanOut(target, seconds, await bareGets(target));
  await idle(target);
}

async function fanOut(target: Target, seconds: number, limit: number): Promise<void> {
  const count = 300;
  const client = target.client('watches', {
    count,
    perConnection: 100,
    path: `${LIST}?watch=true&timeoutSeconds=3000`,
  });
  await client.next();
  const ask = async (): Promise<Seen> => {
    client.say('count');
    return client.next<Seen>();
  };
  const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"watched-"},"data":{"filler":"${FILLER}"}}`;
  const before = await ask();
  const rate = await target.rate(LIST, {
    clients: 4,
    seconds,
    method: 'POST',
    contentType: 'application/json',
    body,
  });
  const after = await ask();
  client.kill();
  const perSecond = (after.events - before.events) / ((after.atMs - before.atMs) / 1000);
  const detail = `${perSecond.toFixed(0)}/s here, from ${rate.toFixed(0)} creates/s`;
  target.report(
    'events a second to 300 watches, scaled to the mark by the bare server',
    (perSecond * MARK_BARE) / limit,
    70_000,
    'more',
    detail,
  );
}

async function idle(target: Target): Promise<void> {
  const count = 5000;
  const pid = await target.apiPid();
  await target.appliance.must(['create', 'namespace', `${NAMESPACE}-idle`]);
  const before = await settled(pid);
  const path = `/api/v1/namespaces/${NAMESPACE}-idle/configmaps?watch=true&timeoutSeconds=3000`;
  const client = target.client('watches', { count, perConnection: 100, path });
  await client.next();
  const each = ((await settled(pid)) - before) / count / 1024;
  client.kill();
  target.report('memory of an idle watch of 5,000, KB', each, 10, 'less');
}
