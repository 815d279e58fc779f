import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Deployment, ReplicaSet } from '../../../src/api/generated/apps/v1.ts';
import type { Node, Pod } from '../../../src/api/generated/core/v1.ts';
import { type AnyObject, DEPLOYMENTS, decodeSecret } from '../../../src/console/data/api/resources.ts';
import { whoCan } from '../../../src/console/data/api/who-can.ts';
import { clusterHealth } from '../../../src/console/data/health.ts';
import { drain, planDrain } from '../../../src/console/data/hosts/drain.ts';
import { parseManifests } from '../../../src/console/data/manifests/yaml.ts';
import { policyText, routeUrl } from '../../../src/console/data/network.ts';
import { ExecSession, execPath, type Socket } from '../../../src/console/data/pods/exec.ts';
import { manifestsOf, removeApplication, validateForm } from '../../../src/console/data/workloads/form.ts';
import { imagesByName, missingImages } from '../../../src/console/data/workloads/images.ts';
import {
  controllerRevisionsOf,
  revisionsOf,
  rollBack,
  rolloutSteps,
  setPaused,
} from '../../../src/console/data/workloads/rollout.ts';
import { scaleTo, workloadState } from '../../../src/console/data/workloads/workloads.ts';
import { ManualClock, settle } from '../../client/clocks.ts';
import { FakeApi, json } from './fake-api.ts';

const deployment = (status: object, spec: object = {}): Deployment =>
  ({
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'n', uid: 'd', generation: 2, resourceVersion: '7' },
    spec: { replicas: 3, selector: {}, template: {}, ...spec },
    status: { observedGeneration: 2, ...status },
  }) as Deployment;

suite('the state of a workload', () => {
  const text = (object: Deployment): string => workloadState(object).text;

  test('the state of a workload describes each phase of a roll-out', () => {
    assert.equal(text(deployment({ observedGeneration: 1 })), 'change not seen by the controller yet');
    assert.equal(text(deployment({ updatedReplicas: 1, replicas: 4 })), 'rolling out, 1 of 3 updated');
    assert.equal(text(deployment({ updatedReplicas: 3, replicas: 4 })), '1 old pods are ending');
    assert.equal(text(deployment({ updatedReplicas: 3, replicas: 3, readyReplicas: 2 })), '1 not ready');
    assert.equal(workloadState(deployment({ updatedReplicas: 3, replicas: 3, readyReplicas: 3 })).health, 'good');
    assert.equal(text(deployment({}, { replicas: 0 })), 'scaled to 0');
  });

  test('the state of a workload reports a refused pod and a roll-out that does not progress', () => {
    const failure = { type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' };
    assert.equal(text(deployment({ conditions: [failure] })), 'exceeded quota');
    const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' };
    assert.equal(workloadState(deployment({ conditions: [late] })).health, 'bad');
  });
});

suite('actions on a workload', () => {
  test('actions on a workload scale through the scale subresource and refuse invalid numbers', async () => {
    const server = new FakeApi();
    server.answer = () => json({});
    const target = { type: DEPLOYMENTS, name: 'web', namespace: 'n' };
    await scaleTo(server.api, target, 5);
    assert.equal(server.requests[0]?.url.pathname, '/apis/apps/v1/namespaces/n/deployments/web/scale');
    assert.deepEqual(JSON.parse(String(server.requests[0]?.request.body)), { spec: { replicas: 5 } });
    await assert.rejects(scaleTo(server.api, target, 1.5), /replicas: 1\.5/);
    assert.equal(server.requests.length, 1);
  });

  test('actions on a workload roll back to the template of a revision, without the template hash label', async () => {
    const set = (revision: string, image: string): ReplicaSet =>
      ({
        metadata: {
          name: `web-${revision}`,
          annotations: { 'deployment.kubernetes.io/revision': revision },
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: 'd' }],
        },
        spec: {
          selector: {},
          template: {
            metadata: { labels: { app: 'web', 'pod-template-hash': 'x' } },
            spec: { containers: [{ name: 'c', image }] },
          },
        },
      }) as ReplicaSet;
    const current = deployment({});
    if (current.metadata !== undefined) current.metadata.annotations = { 'deployment.kubernetes.io/revision': '2' };
    const revisions = revisionsOf(current, [set('1', 'a:1'), set('2', 'a:2'), { metadata: { name: 'other' } }]);
    assert.deepEqual(
      revisions.map(({ number, images, isCurrent }) => [number, images[0], isCurrent]),
      [
        [2, 'a:2', true],
        [1, 'a:1', false],
      ],
    );
    const server = new FakeApi();
    server.answer = () => json({});
    const [, first] = revisions;
    assert.ok(first !== undefined);
    await rollBack(server.api, DEPLOYMENTS, current, first);
    const [guard, change] = JSON.parse(String(server.requests[0]?.request.body));
    assert.deepEqual(guard, { op: 'test', path: '/metadata/generation', value: 2 });
    assert.deepEqual(change.value.metadata.labels, { app: 'web' });
    const withPods = (each: ReplicaSet, replicas: number, readyReplicas: number): ReplicaSet => ({
      ...each,
      status: { replicas, readyReplicas },
    });
    assert.deepEqual(rolloutSteps(current, [withPods(set('1', 'a:1'), 2, 2), withPods(set('2', 'a:2'), 1, 0)]), [
      { label: 'new revision 2', ready: 0, wanted: 3 },
      { label: 'old revision 1', ready: 2, wanted: 2 },
    ]);
    assert.equal(rolloutSteps(current, [withPods(set('1', 'a:1'), 0, 0), withPods(set('2', 'a:2'), 3, 3)]).length, 1);
  });

  test('actions on a workload read the revisions of a stateful set from its controller revisions', () => {
    const owner = { metadata: { name: 'db', uid: 'o' } };
    const revision = (number: number, uid: string) =>
      ({
        metadata: {
          name: `db-${number}`,
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid }],
        },
        revision: number,
        data: {
          spec: { template: { $patch: 'replace', spec: { containers: [{ name: 'c', image: `a:${number}` }] } } },
        },
      }) as unknown as AnyObject;
    const found = controllerRevisionsOf(owner, [revision(1, 'o'), revision(10, 'o'), revision(3, 'other')]);
    assert.deepEqual(
      found.map(({ number, images, isCurrent, template }) => [
        number,
        images,
        isCurrent,
        Object.keys(template as object),
      ]),
      [
        [10, ['a:10'], true, ['spec']],
        [1, ['a:1'], false, ['spec']],
      ],
    );
  });

  test('actions on a workload pause the roll-out of a deployment', async () => {
    const server = new FakeApi();
    server.answer = () => json({});
    await setPaused(server.api, 'web', 'n', true);
    assert.deepEqual(JSON.parse(String(server.requests[0]?.request.body)), { spec: { paused: true } });
  });
});

const podOf = (name: string, more: object = {}): Pod => ({
  metadata: {
    name,
    namespace: 'n',
    uid: name,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true }],
    ...more,
  },
  spec: { containers: [] },
});

suite('drain of a node', () => {
  test('a drain keeps static pods and pods of daemon sets, and warns about lost data', () => {
    const owner = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true };
    const scratch = podOf('scratch');
    const plan = planDrain([
      podOf('static', { annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      podOf('agent', { ownerReferences: [owner] }),
      podOf('bare', { ownerReferences: [] }),
      { ...scratch, spec: { containers: [], volumes: [{ name: 'v', emptyDir: {} }] } },
    ]);
    assert.deepEqual(
      plan.evict.map(({ metadata }) => metadata?.name),
      ['bare', 'scratch'],
    );
    assert.equal(plan.stay.length, 2);
    assert.equal(plan.warnings.length, 2);
  });

  test('a drain waits for a disruption budget and ends when the pods are deleted', async () => {
    const server = new FakeApi();
    const clock = new ManualClock();
    let evictions = 0;
    let isThere = true;
    server.answer = ({ pathname }) => {
      if (pathname.endsWith('/nodes/n1')) return json({});
      if (pathname.endsWith('/eviction'))
        return ++evictions === 1
          ? json({ kind: 'Status', reason: 'TooManyRequests', message: 'violates the budget' }, 429)
          : json({});
      return isThere
        ? json(podOf('a'))
        : json({ kind: 'Status', reason: 'NotFound', message: 'pods "a" not found' }, 404);
    };
    const seen: string[] = [];
    const done = drain('n1', planDrain([podOf('a')]), {
      api: server.api,
      clock,
      signal: new AbortController().signal,
      onProgress: ({ gone, waiting }) => seen.push(`${gone} ${waiting.map(({ text }) => text).join()}`),
    });
    await settle();
    await clock.advance(5_000);
    await clock.advance(1_000);
    isThere = false;
    await clock.advance(1_000);
    await done;
    assert.equal(evictions, 2);
    assert.deepEqual(seen, ['0 eviction requested', '0 violates the budget', '0 ending', '1 ']);
  });

  for (const isEvicted of [false, true])
    test(`a cancelled drain ends at once while ${isEvicted ? 'the pod ends' : 'a budget rejects the eviction'}`, async () => {
      const server = new FakeApi();
      const clock = new ManualClock();
      server.answer = ({ pathname }) => {
        if (!pathname.endsWith('/eviction')) return json(podOf('a'));
        return isEvicted ? json({}) : json({ kind: 'Status', reason: 'TooManyRequests', message: 'budget' }, 429);
      };
      const stopped = new AbortController();
      let error: unknown;
      void drain('n1', planDrain([podOf('a')]), {
        api: server.api,
        clock,
        signal: stopped.signal,
        onProgress: () => {},
      }).catch((reason: unknown) => {
        error = reason;
      });
      await settle();
      await clock.advance(0);
      assert.equal(clock.pendingTimers, 1);
      stopped.abort(new Error('cancelled'));
      await settle();
      assert.equal(String(error), 'Error: cancelled');
      assert.equal(clock.pendingTimers, 0);
    });
});

class FakeSocket implements Socket {
  binaryType = '';
  readyState = 1;
  bufferedAmount = 0;
  readonly sent: Uint8Array[] = [];
  readonly #listeners = new Map<string, (event: { readonly data: unknown }) => void>();
  send(data: Uint8Array<ArrayBuffer>): void {
    this.sent.push(data);
  }
  close(): void {
    this.emit('close');
  }
  addEventListener(type: string, listener: (event: { readonly data: unknown }) => void): void {
    this.#listeners.set(type, listener);
  }
  emit(type: string, data?: unknown): void {
    this.#listeners.get(type)?.({ data });
  }
}

suite('a terminal', () => {
  const message = (channel: number, text: string): ArrayBuffer =>
    Uint8Array.from([channel, ...new TextEncoder().encode(text)]).buffer;

  test('a terminal sends input and size on their channels and reports the exit code once', () => {
    const socket = new FakeSocket();
    const output: string[] = [];
    const ends: unknown[] = [];
    const session = new ExecSession(socket, {
      onOpen: () => undefined,
      onOutput: (bytes, stream) => output.push(`${stream} ${new TextDecoder().decode(bytes)}`),
      onEnd: (text, code) => ends.push([text, code]),
    });
    socket.emit('open');
    session.write('ls\n');
    session.resize(80, 24);
    assert.deepEqual([...(socket.sent[0] ?? [])], [0, 108, 115, 10]);
    assert.equal(new TextDecoder().decode(socket.sent[1]?.subarray(1)), '{"Width":80,"Height":24}');
    assert.equal(socket.sent[1]?.[0], 4);
    socket.emit('message', message(1, 'out'));
    const failed = {
      status: 'Failure',
      message: 'failed',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    };
    socket.emit('message', message(3, JSON.stringify(failed)));
    socket.emit('close');
    socket.emit('close');
    assert.deepEqual(output, ['stdout out']);
    assert.deepEqual(ends, [['failed', 3]]);
  });

  test('a terminal refuses input while the connection is congested', () => {
    const socket = new FakeSocket();
    const session = new ExecSession(socket, { onOpen() {}, onOutput() {}, onEnd() {} });
    socket.bufferedAmount = 5 << 20;
    assert.equal(session.write('x'), false);
    assert.equal(socket.sent.length, 0);
  });

  test('a terminal encodes names and arguments in the path of its request', () => {
    const target = { namespace: 'n', pod: 'p', container: 'c', command: ['sh', '-c', 'a&b'], tty: true };
    assert.equal(
      execPath(target),
      '/api/v1/namespaces/n/pods/p/exec?container=c&stdin=true&stdout=true&tty=true&command=sh&command=-c&command=a%26b',
    );
  });
});

suite('the form for an application', () => {
  const form = { name: 'web', namespace: 'n', image: 'reg:5000/a/web:1', replicas: 2, port: 8080, host: 'a.example' };

  test('the form for an application creates a deployment, a service and a route or an ingress', () => {
    assert.deepEqual(validateForm(form), {});
    const kinds = (value: typeof form, hasRoutes: boolean) => manifestsOf(value, hasRoutes).map(({ kind }) => kind);
    assert.deepEqual(kinds(form, true), ['Deployment', 'Service', 'Route']);
    assert.deepEqual(kinds(form, false), ['Deployment', 'Service', 'Ingress']);
    assert.deepEqual(
      manifestsOf({ ...form, port: undefined, host: '' }, true).map(({ kind }) => kind),
      ['Deployment'],
    );
  });

  test('deletes the objects that the form created, and no other objects of the same name', async () => {
    const server = new FakeApi();
    const foreign = { metadata: { name: 'web' } };
    server.answer = ({ pathname }, { method }) => {
      if (method === 'DELETE') return json({});
      if (pathname.includes('/routes/')) return json({ kind: 'Status', reason: 'NotFound' }, 404);
      return json(pathname.includes('/services/') ? manifestsOf(form, true)[1] : foreign);
    };
    await removeApplication(server.api, 'web', 'n');
    const deleted = server.requests.filter(({ request }) => request.method === 'DELETE').map(({ url }) => url.pathname);
    assert.deepEqual(deleted, ['/api/v1/namespaces/n/services/web', '/apis/apps/v1/namespaces/n/deployments/web']);
    server.requests.length = 0;
    server.answer = () => json({ kind: 'Status', reason: 'InternalError' }, 500);
    await assert.rejects(removeApplication(server.api, 'web', 'n'));
    assert.deepEqual(
      server.requests.map(({ request }) => request.method),
      ['GET'],
      'the deployment stays',
    );
  });

  test('the form for an application names the fields with errors', () => {
    const bad = { name: 'Web_', namespace: 'n', image: 'a b', replicas: -1, port: undefined, host: 'x' };
    assert.deepEqual(Object.keys(validateForm(bad)).sort(), ['image', 'name', 'port', 'replicas']);
  });
});

suite('manifests as YAML', () => {
  test('manifests as YAML report syntax errors and missing fields with their line', () => {
    assert.deepEqual(
      parseManifests('kind: A\n---\napiVersion: v1\nkind: B\nmetadata:\n  name: b\n').problems.map(({ line }) => line),
      [1],
    );
    const twice = parseManifests('apiVersion: v1\nkind: A\nkind: B\n');
    assert.equal(twice.problems[0]?.line, 3);
    assert.match(parseManifests('').problems[0]?.message ?? '', /no object/);
  });

  test('manifests as YAML limit aliases and keep hostile keys as data', () => {
    const levels = Array.from(
      { length: 9 },
      (_, index) => `l${index + 1}: &l${index + 1} [${Array(10).fill(`*l${index}`).join(', ')}]`,
    );
    const bomb = ['apiVersion: v1', 'kind: A', 'metadata: {name: a}', 'l0: &l0 [x]', ...levels].join('\n');
    assert.match(parseManifests(bomb).problems[0]?.message ?? '', /alias/i);
    const { manifests } = parseManifests('apiVersion: v1\nkind: A\nmetadata: {name: a}\n__proto__: {polluted: 1}\n');
    assert.equal(manifests.length, 1);
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });
});

suite('health and other views', () => {
  const node = (name: string, status: string): Node => ({
    metadata: { name },
    status: { conditions: [{ type: 'Ready', status, message: 'm' }] },
  });

  test('summarizes the health of the cluster in one sentence', () => {
    const facts = { pods: [], operators: [] };
    assert.equal(
      clusterHealth({ ...facts, nodes: [node('a', 'True')] }).sentence,
      'The cluster is healthy: 1 node and 0 pods.',
    );
    const broken = clusterHealth({ ...facts, nodes: [node('a', 'Unknown'), node('b', 'True')] });
    assert.equal(broken.sentence, '1 problem needs attention on 2 nodes and 0 pods.');
    assert.equal(broken.problems[0]?.link, '/nodes/a');
    assert.equal(clusterHealth({ ...facts, nodes: undefined }).level, 'unknown');
  });

  test('images list the nodes that lack the image', () => {
    const images = imagesByName([
      { metadata: { name: 'a' }, status: { images: [{ names: ['r/x@sha256:1', 'r/x:1'], sizeBytes: 5 }] } },
      { metadata: { name: 'b' }, status: {} },
    ]);
    assert.deepEqual(images, [{ name: 'r/x:1', bytes: 5, nodes: ['a'], missing: ['b'] }]);
  });

  test('findings about missing images name the pod, the image and the node', () => {
    const withState = (name: string, state: object): Pod => ({
      metadata: { name, namespace: 'n' },
      spec: { nodeName: 'n1', containers: [] },
      status: { containerStatuses: [{ name: 'c', image: 'a:1', imageID: '', ready: false, restartCount: 0, state }] },
    });
    const waiting = { reason: 'ErrImageNeverPull', message: 'no' };
    assert.deepEqual(
      missingImages([withState('p', { waiting }), withState('q', { waiting: { reason: 'CrashLoopBackOff' } })]),
      [{ namespace: 'n', pod: 'p', container: 'c', image: 'a:1', node: 'n1', ...waiting }],
    );
  });

  test('routes are shown with URLs, and network policies are explained in words', () => {
    assert.equal(routeUrl({ spec: { host: 'a.b', tls: {}, path: '/x' } }), 'https://a.b/x');
    assert.equal(
      policyText({
        spec: {
          podSelector: { matchLabels: { app: 'db' } },
          policyTypes: ['Ingress', 'Egress'],
          ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }] }],
        },
      }),
      'Pods with app=db accept traffic from pods with app=web and send traffic to nowhere.',
    );
  });

  test('the view "who can" lists the subjects of matching roles', () => {
    const objects = {
      clusterRoles: [{ metadata: { name: 'all' }, rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      roles: [
        {
          metadata: { name: 'one', namespace: 'n' },
          rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
        },
      ],
      clusterRoleBindings: [
        {
          metadata: { name: 'admins' },
          roleRef: { apiGroup: '', kind: 'ClusterRole', name: 'all' },
          subjects: [{ kind: 'Group', name: 'a' }],
        },
      ],
      roleBindings: [
        {
          metadata: { name: 'b', namespace: 'n' },
          roleRef: { apiGroup: '', kind: 'Role', name: 'one' },
          subjects: [{ kind: 'User', name: 'u' }],
        },
      ],
    };
    const subjects = (verb: string, namespace: string) =>
      whoCan({ verb, group: '', resource: 'pods', namespace }, objects).map(({ subject }) => subject);
    assert.deepEqual(subjects('get', 'n'), ['Group a', 'User u']);
    assert.deepEqual(subjects('delete', 'n'), ['Group a']);
    assert.deepEqual(subjects('get', ''), ['Group a']);
  });

  test('values of secrets are shown as text, and binary values as a note', () => {
    assert.equal(decodeSecret(btoa('geheim')), 'geheim');
    assert.match(decodeSecret(btoa('\u00ff\u00fe')), /^binary value/);
  });
});
