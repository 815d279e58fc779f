import assert from 'node:assert/strict';
import { request } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { storeRevision } from '../../../src/base/brand.ts';
import { startServer, type TestServer } from '../harness.ts';
import { STORE_VARIABLE } from '../stores.ts';

interface Thing {
  kind: string;
  message: string;
  reason: string;
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    deletionTimestamp?: string;
    deletionGracePeriodSeconds?: number;
    finalizers?: string[];
    continue?: string;
    remainingItemCount?: number;
    managedFields?: {
      manager: string;
      operation: string;
      apiVersion: string;
      fieldsV1: unknown;
      subresource?: string;
    }[];
  };
  data?: Record<string, string>;
  spec: Record<string, unknown>;
  status: Record<string, unknown>;
  items: Thing[];
  rows: { cells: unknown[]; object: Thing }[];
  columnDefinitions: { name: string }[];
}

const MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
const ADDRESSES = '/apis/networking.k8s.io/v1/ipaddresses';
const RANGES = '/apis/networking.k8s.io/v1/servicecidrs';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

const configMap = (name: string, data: Record<string, string> = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data,
});
const pod = (name: string, extra: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i' }], ...extra },
});
const deployment = (name: string, replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
});

describe('objects over HTTPS', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
  });
  after(() => server.stop());
  const call = (method: string, path: string, options: Parameters<TestServer['call']>[2] = {}) =>
    server.call<Thing>(method, path, options);

  it('reads an object after its creation, rejects a duplicate, and generates names', async () => {
    const created = await call('POST', MAPS, { body: configMap('a', { k: 'v' }) });
    assert.equal(created.code, 201);
    const read = await call('GET', `${MAPS}/a`);
    assert.deepEqual(read.body, created.body);
    const again = await call('POST', MAPS, { body: configMap('a') });
    assert.equal(again.code, 409);
    assert.equal(again.body.reason, 'AlreadyExists');
    const generated = await call('POST', MAPS, { body: { metadata: { generateName: 'g-' } } });
    assert.match(generated.body.metadata.name, /^g-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    assert.equal((await call('GET', `${MAPS}/none`)).code, 404);
  });

  it('omits kind and version in list items of built-in kinds', async () => {
    await call('POST', MAPS, {
      body: { ...configMap('listed'), metadata: { name: 'listed', labels: { listed: 'x' } } },
    });
    for (const query of ['', '?labelSelector=listed%3Dx', '?limit=1', '?resourceVersion=0']) {
      const { body } = await call('GET', MAPS + query);
      assert.equal((body as unknown as { kind: string }).kind, 'ConfigMapList');
      assert.ok(body.items.length > 0, query);
      for (const item of body.items) assert.deepEqual(Object.keys(item).slice(0, 1), ['metadata'], query);
    }
    const gone = await call('DELETE', `${MAPS}?labelSelector=listed%3Dx`);
    assert.deepEqual(
      gone.body.items.map((item) => Object.keys(item)[0]),
      ['metadata'],
    );
    const one = await call('GET', '/api/v1/namespaces/default');
    assert.deepEqual(Object.keys(one.body).slice(0, 2), ['apiVersion', 'kind']);
  });

  it('sets the same defaults in updated pods as in new ones', async () => {
    const own = { serviceAccountName: 'default', automountServiceAccountToken: false };
    assert.equal((await call('POST', PODS, { body: pod('resent', own) })).code, 201);
    const sent = await call('PUT', `${PODS}/resent`, { body: pod('resent', own) });
    assert.equal(sent.code, 200, sent.text);
    const changed = pod('resent', { ...own, ephemeralContainers: [{ name: 'e', image: 'i' }] });
    const refused = await call('PUT', `${PODS}/resent`, { body: changed });
    assert.equal(refused.code, 422);
    assert.doesNotMatch(refused.body.message, /cannot be set on create/);
    assert.equal((await call('DELETE', `${PODS}/resent?gracePeriodSeconds=0`)).code, 200);
  });

  it('reports invalid bodies in upstream’s wording', async () => {
    const output = async (raw: string, type = 'application/json'): Promise<string> => {
      const { code, body } = await call('POST', MAPS, { raw, type });
      assert.equal(code, 400, raw);
      return body.message.replace(/^the object provided is unrecognized \(must be of type ConfigMap\): /, '');
    };
    const json = "couldn't get version/kind; json parse error: ";
    assert.equal(await output('{'), `${json}unexpected end of JSON input ({)`);
    assert.equal(await output('{a'), `${json}invalid character 'a' looking for beginning of object key string ({a)`);
    assert.equal(await output('{"a":}'), `${json}invalid character '}' looking for beginning of value ({"a":})`);
    assert.equal(await output('{}x'), `${json}invalid character 'x' after top-level value ({}x)`);
    assert.match(await output('[]'), /json: cannot unmarshal array into Go value of type struct .* \(5b5d\)$/);
    assert.equal((await call('POST', MAPS, { raw: 'null' })).code, 422);
    const patched = await call('PATCH', `${MAPS}/x`, { raw: '{', type: 'application/merge-patch+json' });
    assert.equal(patched.body.message, 'error decoding patch: unexpected end of JSON input');
    assert.equal((await call('HEAD', MAPS)).code, 405);
  });

  it('rejects an apply with unknown fields, in upstream’s wording', async () => {
    const apply = (document: object) =>
      call('PATCH', `${MAPS}/applied?fieldManager=m`, { body: document, type: 'application/apply-patch+yaml' });
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' } };
    const unknown = await apply({ ...map, extra: 1 });
    assert.deepEqual(
      [unknown.code, unknown.body.reason, unknown.body.message],
      [
        500,
        undefined,
        'failed to create typed patch object (/applied; /v1, Kind=ConfigMap): .extra: field not declared in schema',
      ],
    );
    const wrong = await apply({ ...map, data: { a: 1 } });
    assert.match(wrong.body.message, /: \.data\.a: expected string, got &value\.valueUnstructured\{Value:1\}$/);
    const other = await apply({ ...map, apiVersion: 'apps/v1' });
    assert.deepEqual([other.code, other.body.message], [400, 'invalid object type: apps/v1, Kind=ConfigMap']);
    assert.equal((await apply({ metadata: map.metadata })).body.message, 'invalid object type: /, Kind=');
    assert.equal((await call('GET', `${MAPS}/applied`)).code, 404);
  });

  it('returns an empty log for an unscheduled pod, and rejects invalid log options', async () => {
    assert.equal((await call('POST', PODS, { body: pod('silent', { serviceAccountName: 'default' }) })).code, 201);
    const log = (query: string, name = 'silent') => call('GET', `${PODS}/${name}/log${query}`);
    assert.equal((await log('')).code, 204);
    assert.equal((await log('', 'nobody')).code, 404);
    assert.equal((await log('?container=z')).body.message, 'container z is not valid for pod silent');
    const refused = await log('?tailLines=-1&limitBytes=0&sinceSeconds=0');
    assert.equal(refused.code, 422);
    assert.equal(
      refused.body.message,
      'PodLogOptions "silent" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]',
    );
    assert.equal((await log('?tailLines=x')).body.message, 'strconv.ParseInt: parsing "x": invalid syntax');
    assert.equal((await call('GET', `${PODS}/nobody/exec?command=a`)).code, 404);
    assert.equal((await call('DELETE', `${PODS}/silent?gracePeriodSeconds=0`)).code, 200);
  });

  it('stores __proto__ as an ordinary key', async () => {
    const raw = '{"metadata":{"name":"proto"},"data":{"__proto__":"x"}}';
    assert.equal((await call('POST', MAPS, { raw })).code, 201);
    assert.match((await call('GET', `${MAPS}/proto`)).text, /"data":\{"__proto__":"x"\}/);
    for (const [type, patch] of [
      ['application/merge-patch+json', '{"data":{"__proto__":"y","constructor":"z"}}'],
      ['application/strategic-merge-patch+json', '{"data":{"__proto__":"w"}}'],
      ['application/json-patch+json', '[{"op":"add","path":"/data/__proto__","value":"v"}]'],
    ] as const) {
      const patched = await call('PATCH', `${MAPS}/proto`, { raw: patch, type });
      assert.ok([200, 400].includes(patched.code), patched.text);
    }
    assert.equal(({} as Record<string, unknown>)['constructor'], Object);
    assert.match((await call('GET', `${MAPS}/proto`)).text, /"__proto__":"[vw]"/);
  });

  it("returns 422 in upstream's wording for a patch whose result does not fit the kind", async () => {
    await call('POST', DEPLOYMENTS, { body: deployment('patched', 1) });
    const refused = async (form: string, patch: unknown, path = `${DEPLOYMENTS}/patched`): Promise<string> => {
      const { code, body } = await call('PATCH', path, { body: patch, type: `application/${form}+json` });
      assert.equal(code, 422, JSON.stringify(body));
      assert.equal(body.reason, 'Invalid');
      return body.message;
    };
    const strategic = (patch: unknown) => refused('strategic-merge-patch', patch);
    assert.equal(
      await strategic({ metadata: { labels: 'invalid', annotations: { b: '2', a: '1' } } }),
      ' "" is invalid: patch: Invalid value: "map[metadata:map[annotations:map[a:1 b:2] labels:invalid]]": cannot restore map from string',
    );
    assert.match(
      await strategic({ spec: { template: 7 } }),
      /"map\[spec:map\[template:7\]\]": cannot restore struct from: int64$/,
    );
    assert.match(
      await strategic({ metadata: { finalizers: true } }),
      /finalizers:true.*: cannot restore slice from bool$/,
    );
    const merged = { metadata: { labels: 'invalid' } };
    assert.match(
      await refused('merge-patch', merged),
      /^ "" is invalid: patch: Invalid value: .*: json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map\[string\]string$/,
    );
    const operations = [{ op: 'replace', path: '/spec/replicas', value: 'many' }];
    assert.match(await refused('json-patch', operations), /cannot unmarshal string .*spec.replicas of type int32$/);
    assert.match(
      await refused('merge-patch', { spec: { replicas: 'many' } }, `${DEPLOYMENTS}/patched/scale`),
      /cannot unmarshal string/,
    );
    const written = await call('POST', DEPLOYMENTS, { body: merged });
    assert.equal(written.code, 400, 'a document is another matter');
  });

  it('indents JSON on request, and by default for browsers and command-line tools', async () => {
    await call('POST', MAPS, { body: configMap('read') });
    const review = { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } };
    const requested: [string, string, unknown][] = [
      ['GET', `${MAPS}/read`, undefined],
      ['GET', MAPS, undefined],
      ['GET', '/api/v1', undefined],
      ['GET', `${MAPS}/none`, undefined],
      ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review],
    ];
    for (const [method, path, body] of requested) {
      const indented = async (agent: string, query = ''): Promise<boolean> => {
        const { text } = await call(method, `${path}${query}`, {
          headers: { 'user-agent': agent },
          ...(body === undefined ? {} : { body }),
        });
        return /^\{\n {2}"/.test(text);
      };
      for (const agent of ['curl/8.5.0', 'Wget/1.21', 'Mozilla/5.0 (X11)'])
        assert.equal(await indented(agent), true, path);
      assert.equal(await indented('curl/8.5.0', '?pretty=false'), false, path);
      assert.equal(await indented('kubectl/v1.20.2'), false, path);
      assert.equal(await indented('kubectl/v1.20.2', '?pretty=true'), true, path);
    }
  });

  it('names the unexpected kind in a body', async () => {
    const refusal = async (apiVersion: string, kind: string): Promise<string> => {
      const { code, body } = await call('POST', MAPS, { body: { ...configMap('x'), apiVersion, kind } });
      assert.equal(code, 400);
      return body.message;
    };
    assert.equal(
      await refusal('v1', 'Pod'),
      'Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion',
    );
    assert.match(await refusal('apps/v1', 'Deployment'), /: converting \(v1.Deployment\) to \(core.ConfigMap\)/);
    assert.equal(
      await refusal('apps/v9', 'ConfigMap'),
      'ConfigMap in version "v9" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "apps/v9"',
    );
    const job = { apiVersion: 'batch/v1beta1', kind: 'CronJob', metadata: { name: 'x' } };
    const older = await call('POST', '/apis/batch/v1/namespaces/default/cronjobs', { body: job });
    assert.match(older.body.message, /API version in the data \(batch\/v1beta1\) does not match the expected/);
  });

  it('checks resourceVersion and uid on updates', async () => {
    const created = (await call('POST', MAPS, { body: configMap('guarded', { n: '0' }) })).body;
    const first = await call('PUT', `${MAPS}/guarded`, { body: { ...created, data: { n: '1' } } });
    assert.equal(first.code, 200);
    const stale = await call('PUT', `${MAPS}/guarded`, { body: { ...created, data: { n: '2' } } });
    assert.equal(stale.code, 409);
    assert.match(stale.body.message, /the object has been modified/);
    const other = { ...created, metadata: { ...created.metadata, resourceVersion: '', uid: 'x' } };
    assert.equal((await call('PUT', `${MAPS}/guarded`, { body: other })).code, 409);
    const unconditional = await call('PUT', `${MAPS}/guarded`, { body: configMap('guarded', { n: '3' }) });
    assert.equal(unconditional.body.data?.['n'], '3');
    assert.equal(unconditional.body.metadata.uid, created.metadata.uid);
    const same = await call('PUT', `${MAPS}/guarded`, { body: configMap('guarded', { n: '3' }) });
    assert.equal(
      same.body.metadata.resourceVersion,
      unconditional.body.metadata.resourceVersion,
      'no change, no write',
    );
  });

  it('concurrent patches of the same object lose no increment', async () => {
    await call('POST', DEPLOYMENTS, { body: deployment('race', 0) });
    const keys = Array.from({ length: 24 }, (_, index) => `k${index}`);
    const answers = await Promise.all(
      keys.map((key) =>
        call('PATCH', `${DEPLOYMENTS}/race`, {
          raw: JSON.stringify({ metadata: { annotations: { [key]: 'x' } } }),
          type: 'application/merge-patch+json',
        }),
      ),
    );
    assert.deepEqual(new Set(answers.map((each) => each.code)), new Set([200]));
    const annotations = (await server.call<{ metadata: { annotations: object } }>('GET', `${DEPLOYMENTS}/race`)).body
      .metadata.annotations;
    assert.deepEqual(Object.keys(annotations).sort(), [...keys].sort());
  });

  it('updates of spec, status and scale are separate, and only spec changes increase the generation', async () => {
    const created = (await call('POST', DEPLOYMENTS, { body: { ...deployment('parts', 2), status: { replicas: 9 } } }))
      .body;
    assert.equal(created.metadata.generation, 1);
    assert.equal(created.status['replicas'], undefined);
    const status = await call('PATCH', `${DEPLOYMENTS}/parts/status`, {
      raw: '{"spec":{"replicas":7},"status":{"replicas":5}}',
      type: 'application/merge-patch+json',
    });
    assert.equal(status.body.spec['replicas'], 2);
    assert.equal(status.body.status['replicas'], 5);
    assert.equal(status.body.metadata.generation, 1);
    const scale = await call('GET', `${DEPLOYMENTS}/parts/scale`);
    assert.deepEqual(
      [scale.body.kind, scale.body.spec['replicas'], scale.body.status],
      ['Scale', 2, { replicas: 5, selector: 'app=parts' }],
    );
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
    const table = await server.call<{ columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] }>(
      'GET',
      `${DEPLOYMENTS}/parts/scale`,
      { headers: { accept } },
    );
    assert.deepEqual(
      table.body.columnDefinitions.map((each) => each.name),
      ['Name', 'Desired', 'Available', 'Age'],
    );
    assert.deepEqual(table.body.rows[0]?.cells.slice(0, 3), ['parts', 2, 5]);
    // Ansible sends the kind of the scaled object instead of Scale.
    const named = { kind: 'Deployment', spec: { replicas: 3 } };
    for (const [type, code] of [
      ['application/strategic-merge-patch+json', 200],
      ['application/merge-patch+json', 400],
    ] as const) {
      const patched = await call('PATCH', `${DEPLOYMENTS}/parts/scale?dryRun=All`, { body: named, type });
      assert.equal(patched.code, code, type);
      if (code === 200) assert.deepEqual([patched.body.kind, patched.body.spec['replicas']], ['Scale', 3]);
      const misnamed = { kind: 'Pod', metadata: { labels: { a: 'b' } } };
      assert.equal((await call('PATCH', `${DEPLOYMENTS}/parts?dryRun=All`, { body: misnamed, type })).code, code, type);
    }
    const scaled = await call('PUT', `${DEPLOYMENTS}/parts/scale`, { body: { ...scale.body, spec: { replicas: 4 } } });
    assert.equal(scaled.code, 200);
    const after = (await call('GET', `${DEPLOYMENTS}/parts`)).body;
    assert.deepEqual([after.spec['replicas'], after.metadata.generation, after.status['replicas']], [4, 2, 5]);
    assert.equal(
      (await call('PUT', `${DEPLOYMENTS}/parts/scale`, { body: { ...scale.body, spec: { replicas: 1 } } })).code,
      409,
    );
  });

  it('server-side apply creates objects, owns fields, reports conflicts and takes fields by force', async () => {
    const apply = (manager: string, replicas: number, query = '') =>
      call('PATCH', `${DEPLOYMENTS}/applied?fieldManager=${manager}${query}`, {
        raw: JSON.stringify(deployment('applied', replicas)),
        type: 'application/apply-patch+yaml',
      });
    assert.equal((await apply('one', 1)).code, 201);
    assert.equal((await apply('one', 2)).code, 200);
    const conflict = await apply('two', 3);
    assert.equal(conflict.code, 409);
    assert.match(conflict.body.message, /conflict with "one"/);
    const forced = await apply('two', 3, '&force=true');
    assert.equal(forced.body.spec['replicas'], 3);
    const managers = forced.body.metadata.managedFields?.map((each) => `${each.manager} ${each.operation}`);
    assert.ok(managers?.includes('one Apply') && managers.includes('two Apply'), String(managers));
    const unnamed = await call('PATCH', `${DEPLOYMENTS}/applied`, { raw: '{}', type: 'application/apply-patch+yaml' });
    assert.equal(unnamed.code, 422);
  });

  it('records field ownership in the API version of the write', async () => {
    const owners = (thing: Thing) =>
      thing.metadata.managedFields?.map((each) => [each.manager, each.apiVersion, each.fieldsV1]);
    const scaler = {
      apiVersion: 'autoscaling/v1',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'older' },
      spec: {
        maxReplicas: 3,
        targetCPUUtilizationPercentage: 80,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' },
      },
    };
    const scalers = '/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers';
    const made = await call('POST', `${scalers}?fieldManager=one`, { body: scaler });
    assert.deepEqual(owners(made.body), [
      [
        'one',
        'autoscaling/v1',
        {
          'f:spec': {
            'f:maxReplicas': {},
            'f:minReplicas': {},
            'f:scaleTargetRef': {},
            'f:targetCPUUtilizationPercentage': {},
          },
        },
      ],
    ]);
    const patched = await call('PATCH', `${scalers}/older?fieldManager=two`, {
      raw: JSON.stringify({ spec: { targetCPUUtilizationPercentage: 70 } }),
      type: 'application/merge-patch+json',
    });
    assert.deepEqual(
      owners(patched.body)?.find(([manager]) => manager === 'two'),
      ['two', 'autoscaling/v1', { 'f:spec': { 'f:targetCPUUtilizationPercentage': {} } }],
    );
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'e' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      regarding: { kind: 'Pod', name: 'p', namespace: 'default' },
      action: 'a',
      reason: 'r',
      type: 'Normal',
      reportingController: 'c',
      reportingInstance: 'i',
    };
    const reported = await call('POST', '/apis/events.k8s.io/v1/namespaces/default/events', { body: event });
    const names = ['action', 'eventTime', 'reason', 'regarding', 'reportingController', 'reportingInstance', 'type'];
    const [[, version, fields] = []] = owners(reported.body) ?? [];
    assert.deepEqual(
      [version, fields],
      ['events.k8s.io/v1', Object.fromEntries(names.map((name) => [`f:${name}`, {}]))],
    );
  });

  it('tracks field ownership across API versions', async () => {
    const path = (version: string) => `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers/h`;
    const apply = (version: string, manager: string, spec: object, query = '') =>
      call('PATCH', `${path(version)}?fieldManager=${manager}${query}`, {
        raw: JSON.stringify({
          apiVersion: `autoscaling/${version}`,
          kind: 'HorizontalPodAutoscaler',
          metadata: { name: 'h' },
          spec,
        }),
        type: 'application/apply-patch+yaml',
      });
    const target = { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' }, maxReplicas: 5 };
    const cpu = (averageUtilization: number) => ({
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }],
    });
    const made = await apply('v1', 'one', { ...target, targetCPUUtilizationPercentage: 50, minReplicas: 2 });
    assert.equal(made.code, 201);
    assert.equal((await apply('v2', 'two', cpu(50))).code, 200);
    const conflict = await apply('v2', 'two', cpu(60));
    assert.equal(conflict.code, 409);
    assert.match(conflict.body.message, /conflict with "one": \.spec\.targetCPUUtilizationPercentage$/);
    assert.equal((await apply('v2', 'two', cpu(60), '&force=true')).code, 200);
    // A field that the manager no longer applies in the other version is removed; fields of the other manager stay.
    const dropped = await apply('v2', 'one', target);
    assert.equal(dropped.code, 200, dropped.text);
    const seen = await call('GET', path('v1'));
    assert.equal(seen.body.spec['targetCPUUtilizationPercentage'], 60);
    assert.equal(seen.body.spec['minReplicas'], 1);
    assert.equal((await apply('v1', 'two', {})).code, 200);
    assert.equal((await call('GET', path('v1'))).body.spec['targetCPUUtilizationPercentage'], 80);
  });

  it('removes duplicate owner references and returns a warning', async () => {
    const owner = (uid: string, name = 'n') => ({ apiVersion: 'v1', kind: 'Node', name, uid });
    const named = (ownerReferences: object[]) => ({
      ...configMap('owned'),
      metadata: { name: 'owned', ownerReferences },
    });
    const owners = ({ body }: { body: Thing }) =>
      (body.metadata as unknown as { ownerReferences: { uid: string }[] }).ownerReferences.map(({ uid }) => uid);
    const made = await call('POST', MAPS, { body: named([owner('a'), owner('b'), owner('a'), owner('a', 'other')]) });
    assert.deepEqual(owners(made), ['a', 'b', 'a']);
    assert.match(String(made.headers['warning']), /contains duplicate entries; .*duplicate UID\(s\) observed: a"/);
    const put = await call('PUT', `${MAPS}/owned`, { body: named([owner('c'), owner('c')]) });
    assert.deepEqual(owners(put), ['c']);
    const raw = JSON.stringify([{ op: 'add', path: '/metadata/ownerReferences/-', value: owner('c') }]);
    const patched = await call('PATCH', `${MAPS}/owned`, { raw, type: 'application/json-patch+json' });
    assert.deepEqual(owners(patched), ['c']);
    assert.match(String(patched.headers['warning']), /duplicate entries after mutating admission happens; /);
  });

  it('a dry run writes no object', async () => {
    assert.equal((await call('POST', `${MAPS}?dryRun=All`, { body: configMap('dry') })).code, 201);
    assert.equal((await call('GET', `${MAPS}/dry`)).code, 404);
    await call('POST', MAPS, { body: configMap('dry', { a: '1' }) });
    const patched = await call('PATCH', `${MAPS}/dry?dryRun=All`, {
      raw: '{"data":{"a":"2"}}',
      type: 'application/merge-patch+json',
    });
    assert.equal(patched.body.data?.['a'], '2');
    assert.equal((await call('DELETE', `${MAPS}/dry?dryRun=All`)).code, 200);
    assert.equal((await call('GET', `${MAPS}/dry`)).body.data?.['a'], '1');
    const some = await call('POST', `${MAPS}?dryRun=Some`, { body: configMap('x') });
    assert.equal(some.code, 422);
    assert.equal(
      (some.body as unknown as { message: string }).message,
      'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
    );
  });

  it('server-side apply replaces values with empty values and owns the empty values', async () => {
    const pod = (more: object, value: string) => ({
      ...more,
      containers: [{ name: 'c', image: 'i', env: [{ name: 'A', value }] }],
    });
    const deployment = (paused: boolean, template: object) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'emptied' },
      spec: {
        paused,
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: template },
      },
    });
    const set = { hostNetwork: true, nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }] };
    await call('POST', DEPLOYMENTS, { body: deployment(true, pod(set, 'one')) });
    const apply = async () => {
      const { body } = await server.call<{
        metadata: { resourceVersion: string; managedFields: { operation: string; fieldsV1: object }[] };
        spec: { paused?: boolean; template: { spec: Record<string, unknown> & { containers: { env: object[] }[] } } };
      }>('PATCH', `${DEPLOYMENTS}/emptied?fieldManager=m&force=true`, {
        body: deployment(false, pod({ hostNetwork: false, nodeSelector: {}, tolerations: [] }, '')),
        type: 'application/apply-patch+yaml',
      });
      return body;
    };
    const { metadata, spec } = await apply();
    const { hostNetwork, nodeSelector, tolerations, containers } = spec.template.spec;
    assert.deepEqual(
      [spec.paused, hostNetwork, nodeSelector, tolerations],
      [undefined, undefined, undefined, undefined],
    );
    assert.deepEqual(containers[0]?.env, [{ name: 'A' }]);
    const own = JSON.stringify(metadata.managedFields.find(({ operation }) => operation === 'Apply')?.fieldsV1);
    for (const field of ['paused', 'hostNetwork', 'nodeSelector', 'tolerations', 'value'])
      assert.ok(own.includes(`"f:${field}":{}`));
    assert.equal((await apply()).metadata.resourceVersion, metadata.resourceVersion, 'applied again nothing changes');
    const unpaused = (manager: string, paused: boolean) =>
      call('PATCH', `${DEPLOYMENTS}/disputed?fieldManager=${manager}`, {
        body: { ...deployment(paused, pod({}, 'one')), metadata: { name: 'disputed' } },
        type: 'application/apply-patch+yaml',
      });
    assert.equal((await unpaused('one', true)).code, 201);
    assert.match(String((await unpaused('two', false)).body.message), /conflict with "one": \.spec\.paused$/);
  });

  it('records no ownership of labels that a status endpoint ignores', async () => {
    const kinds = [
      [DEPLOYMENTS, 'apps/v1', 'Deployment'],
      ['/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas', 'flowcontrol.apiserver.k8s.io/v1', 'FlowSchema'],
    ] as const;
    const specs = {
      Deployment: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
      FlowSchema: { priorityLevelConfiguration: { name: 'exempt' } },
    };
    for (const [path, apiVersion, kind] of kinds) {
      const apply = (manager: string, subresource: string, label: string) =>
        server.call<{
          metadata: { labels: object; managedFields: { manager: string; fieldsV1: object }[] };
        }>('PATCH', `${path}/labelled${subresource}?fieldManager=${manager}`, {
          body: {
            apiVersion,
            kind,
            metadata: { name: 'labelled', labels: { a: label } },
            spec: specs[kind],
            status: { conditions: [{ type: 'Mine', status: 'True' }] },
          },
          type: 'application/apply-patch+yaml',
        });
      assert.equal((await apply('one', '', 'b')).code, 201);
      const { code, body } = await apply('two', '/status', 'c');
      assert.equal(code, 200);
      assert.deepEqual(body.metadata.labels, { a: 'b' });
      const own = body.metadata.managedFields.find(({ manager }) => manager === 'two');
      assert.deepEqual(Object.keys(own?.fieldsV1 ?? {}), ['f:status']);
    }
  });

  it('rejects unknown and duplicate fields under strict validation, and otherwise warns', async () => {
    const raw = '{"metadata":{"name":"strict"},"spec":{"containers":[{"name":"c","image":"i","nope":1,"image":"j"}]}}';
    const strict = await call('POST', `${PODS}?fieldValidation=Strict`, { raw });
    assert.equal(strict.code, 400);
    assert.match(
      strict.body.message,
      /strict decoding error: unknown field "spec\.containers\[0\]\.nope", duplicate field "spec\.containers\[0\]\.image"$/,
    );
    const warned = await call('POST', `${PODS}?fieldValidation=Warn`, { raw });
    assert.equal(warned.code, 201);
    assert.match(String(warned.headers['warning']), /299 - "unknown field \\"spec\.containers\[0\]\.nope\\""/);
    const ignored = await call('POST', `${PODS}?fieldValidation=Ignore`, { raw: raw.replace('strict', 'ignored') });
    assert.equal(ignored.headers['warning'], undefined);
    assert.doesNotMatch(ignored.text, /nope/);
  });

  it('reports invalid fields of an object with reasons and paths', async () => {
    const bad = await server.call<{ reason: string; details: { causes: { field: string }[] } }>('POST', PODS, {
      body: { ...pod('Bad Name'), metadata: { name: 'Bad Name' } },
    });
    assert.equal(bad.code, 422);
    assert.ok(bad.body.details.causes.some((cause) => cause.field === 'metadata.name'));
    assert.equal((await call('POST', PODS, { body: { ...pod('x'), kind: 'Service' } })).code, 400);
    assert.equal(
      (await call('POST', PODS, { body: { ...pod('x'), metadata: { name: 'x', namespace: 'other' } } })).code,
      400,
    );
    assert.equal((await call('POST', '/api/v1/namespaces/nowhere/pods', { body: pod('x') })).code, 404);
    assert.equal((await call('POST', PODS, { raw: 'x: y', type: 'text/plain' })).code, 415);
    assert.equal((await call('GET', '/api/v1/namespaces/default/nodes')).code, 404);
    assert.equal((await call('GET', '/api/v1/namespaces/default/nothings')).code, 404);
  });

  it('deletes pods gracefully, or immediately on request', async () => {
    await call('POST', PODS, { body: pod('graceful', { nodeName: 'n1', terminationGracePeriodSeconds: 20 }) });
    const marked = await call('DELETE', `${PODS}/graceful`);
    assert.equal(marked.body.metadata.deletionGracePeriodSeconds, 20);
    assert.notEqual(marked.body.metadata.deletionTimestamp, undefined);
    const shorter = await call('DELETE', `${PODS}/graceful?gracePeriodSeconds=5`);
    assert.equal(shorter.body.metadata.deletionGracePeriodSeconds, 5);
    const wrong = await call('DELETE', `${PODS}/graceful`, {
      body: { gracePeriodSeconds: 0, preconditions: { uid: 'x' } },
    });
    assert.equal(wrong.code, 409);
    const uid = marked.body.metadata.uid;
    assert.equal(
      (await call('DELETE', `${PODS}/graceful`, { body: { gracePeriodSeconds: 0, preconditions: { uid } } })).code,
      200,
    );
    assert.equal((await call('GET', `${PODS}/graceful`)).code, 404);
    await call('POST', PODS, { body: pod('hasty', { nodeName: 'n1', terminationGracePeriodSeconds: 0 }) });
    const requested = await call('DELETE', `${PODS}/hasty?gracePeriodSeconds=60`);
    assert.equal(requested.body.metadata.deletionGracePeriodSeconds, 60, 'what is asked is above what the pod says');
    await call('DELETE', `${PODS}/hasty?gracePeriodSeconds=0`);
    await call('POST', PODS, { body: pod('unscheduled') });
    await call('DELETE', `${PODS}/unscheduled`);
    assert.equal((await call('GET', `${PODS}/unscheduled`)).code, 404);
  });

  it('returns the deleted object at the revision of the delete; a second delete can only shorten the grace period', async () => {
    const cases: [path: string, begun: boolean, options: object, changes: boolean][] = [
      ['/api/v1/namespaces/default/serviceaccounts', false, {}, true],
      ['/api/v1/namespaces/default/serviceaccounts', true, {}, false],
      ['/api/v1/namespaces/default/serviceaccounts', true, { propagationPolicy: 'Orphan' }, true],
      [MAPS, true, { propagationPolicy: 'Foreground' }, true],
      [PODS, false, { propagationPolicy: 'Foreground' }, true],
      [PODS, true, {}, false],
      [PODS, true, { propagationPolicy: 'Orphan' }, false],
      [PODS, true, { propagationPolicy: 'Foreground', gracePeriodSeconds: 30 }, false],
      [PODS, true, { gracePeriodSeconds: 10 }, true],
    ];
    for (const [index, [path, begun, options, changes]] of cases.entries()) {
      const name = `ends-${index}`;
      const finalizers = begun ? ['lab.test/waits'] : [];
      const spec = { automountServiceAccountToken: false, nodeName: 'n' };
      const body = path === PODS ? pod(name, spec) : { metadata: { name } };
      Object.assign((body as { metadata: object }).metadata, { finalizers });
      const made = await call('POST', path, { body });
      assert.equal(made.code, 201, made.text);
      if (begun) await call('DELETE', `${path}/${name}`);
      const before = await call('GET', `${path}/${name}`);
      const deleted = await call('DELETE', `${path}/${name}`, { body: options });
      assert.equal(deleted.code, 200, deleted.text);
      const [was, is] = [before, deleted].map((each) => Number(each.body.metadata['resourceVersion']));
      assert.equal((is ?? 0) > (was ?? 0), changes, `${path} ${JSON.stringify(options)}: ${deleted.text}`);
      await call('PATCH', `${path}/${name}`, {
        raw: '{"metadata":{"finalizers":null}}',
        type: 'application/merge-patch+json',
      });
      await call('DELETE', `${path}/${name}?gracePeriodSeconds=0`);
    }
  });

  it("uses each pod's own grace period in a deletecollection", async () => {
    const labelled = (name: string, spec: object) => {
      const { metadata, ...rest } = pod(name, spec);
      return { ...rest, metadata: { ...metadata, labels: { together: 'yes' } } };
    };
    const bound = { nodeName: 'n1' };
    await call('POST', PODS, { body: labelled('a-unbound', { terminationGracePeriodSeconds: 60 }) });
    await call('POST', PODS, { body: labelled('b-bound', { ...bound, terminationGracePeriodSeconds: 60 }) });
    await call('POST', PODS, { body: labelled('c-bound', { ...bound, terminationGracePeriodSeconds: 20 }) });
    assert.equal((await call('DELETE', `${PODS}?labelSelector=together=yes`)).code, 200);
    assert.equal((await call('GET', `${PODS}/a-unbound`)).code, 404);
    for (const [name, seconds] of [
      ['b-bound', 60],
      ['c-bound', 20],
    ] as const) {
      const { body } = await call('GET', `${PODS}/${name}`);
      assert.equal(body.metadata.deletionGracePeriodSeconds, seconds, name);
      await call('DELETE', `${PODS}/${name}?gracePeriodSeconds=0`);
    }
  });

  it('an object is deleted when its last finalizer is removed', async () => {
    await call('POST', MAPS, { body: { ...configMap('held'), metadata: { name: 'held', finalizers: ['a.b/c'] } } });
    const marked = await call('DELETE', `${MAPS}/held`, { body: { propagationPolicy: 'Foreground' } });
    assert.deepEqual([marked.code, marked.body.metadata.finalizers], [200, ['a.b/c', 'foregroundDeletion']]);
    // If the deprecated option is given, a pending deletion is reported with status 202.
    assert.equal((await call('DELETE', `${MAPS}/held`, { body: { orphanDependents: false } })).code, 202);
    await call('DELETE', `${MAPS}/held`, { body: { propagationPolicy: 'Foreground' } });
    const patch = (finalizers: string[]) =>
      call('PATCH', `${MAPS}/held`, {
        raw: JSON.stringify({ metadata: { finalizers } }),
        type: 'application/merge-patch+json',
      });
    const added = await patch(['a.b/c', 'foregroundDeletion', 'a.b/late']);
    assert.equal(added.code, 422);
    assert.match(
      added.text,
      /metadata\.finalizers: Forbidden: no new finalizers can be added if the object is being deleted/,
    );
    assert.equal((await patch(['foregroundDeletion'])).code, 200);
    assert.equal((await call('GET', `${MAPS}/held`)).code, 200);
    assert.equal((await patch([])).code, 200);
    assert.equal((await call('GET', `${MAPS}/held`)).code, 404);
  });

  it('removes the finalizer of a namespace only through finalize', async () => {
    await call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'going' } } });
    const marked = await call('DELETE', '/api/v1/namespaces/going');
    assert.equal(marked.body.status['phase'], 'Terminating');
    const refused = await call('POST', '/api/v1/namespaces/going/configmaps', { body: configMap('late') });
    assert.equal(refused.code, 403);
    assert.match(refused.text, /NamespaceTerminating/);
    assert.equal((await call('DELETE', '/api/v1/namespaces/going')).code, 200);
    const finalized = await call('PUT', '/api/v1/namespaces/going/finalize', {
      body: { ...marked.body, metadata: { name: 'going' }, spec: {} },
    });
    assert.equal(finalized.code, 200);
    assert.equal((await call('GET', '/api/v1/namespaces/going')).code, 404);
    assert.equal((await call('DELETE', '/api/v1/namespaces/default')).code, 403);
  });

  it('lists all pages at the same revision', async () => {
    for (const name of ['p-a', 'p-b', 'p-c', 'p-d', 'p-e']) {
      await call('POST', MAPS, { body: { ...configMap(name), metadata: { name, labels: { page: 'yes' } } } });
    }
    const first = await call('GET', `${MAPS}?labelSelector=page%3Dyes&limit=2`);
    const revision = first.body.metadata.resourceVersion;
    await call('DELETE', `${MAPS}/p-d`);
    await call('PATCH', `${MAPS}/p-e`, { raw: '{"data":{"late":"yes"}}', type: 'application/merge-patch+json' });
    const second = await call(
      'GET',
      `${MAPS}?labelSelector=page%3Dyes&limit=2&continue=${first.body.metadata.continue}`,
    );
    const third = await call(
      'GET',
      `${MAPS}?labelSelector=page%3Dyes&limit=2&continue=${second.body.metadata.continue}`,
    );
    const names = [first, second, third].flatMap((page) => page.body.items.map((each) => each.metadata.name));
    assert.deepEqual(names, ['p-a', 'p-b', 'p-c', 'p-d', 'p-e']);
    assert.equal(third.body.items[0]?.data?.['late'], undefined);
    assert.equal(third.body.metadata.resourceVersion, revision);
    assert.equal(third.body.metadata.continue, undefined);
    const exact = await call(
      'GET',
      `${MAPS}?labelSelector=page%3Dyes&resourceVersion=${revision}&resourceVersionMatch=Exact`,
    );
    assert.equal(exact.body.items.length, 5);
    await server.store.compact(storeRevision(Number(revision) + 1));
    const late = await call('GET', `${MAPS}?labelSelector=page%3Dyes&limit=2&continue=${first.body.metadata.continue}`);
    assert.equal(late.code, 410);
    const onward = await call(
      'GET',
      `${MAPS}?labelSelector=page%3Dyes&limit=9&continue=${late.body.metadata.continue}`,
    );
    assert.deepEqual(
      onward.body.items.map((each) => each.metadata.name),
      ['p-c', 'p-e'],
    );
    assert.equal((await call('GET', `${MAPS}?continue=rubbish&limit=1`)).code, 400);
    for (const contradiction of [
      'resourceVersionMatch=Exact',
      'resourceVersionMatch=Exact&resourceVersion=0',
      'resourceVersionMatch=Nearly&resourceVersion=1',
      `resourceVersionMatch=Exact&resourceVersion=1&limit=2&continue=${first.body.metadata.continue}`,
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      'watch=true&sendInitialEvents=true',
      'watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1',
    ]) {
      const refused = await call('GET', `${MAPS}?${contradiction}`);
      assert.equal(refused.code, 422, contradiction);
      assert.match(refused.text, /ListOptions\.meta\.k8s\.io \\"\\" is invalid/);
    }
    assert.equal((await call('GET', `${MAPS}?resourceVersion=99999999&timeoutSeconds=1`)).code, 504);
  });

  it('a continue token continues after the last listed object, also for another label selector', async () => {
    for (const [name, side] of [
      ['s-a', 'left'],
      ['s-b', 'right'],
      ['s-c', 'left'],
      ['s-d', 'right'],
    ] as const)
      await call('POST', MAPS, { body: { ...configMap(name), metadata: { name, labels: { side } } } });
    const first = await call('GET', `${MAPS}?labelSelector=side%3Dleft&limit=1`);
    for (const change of [undefined, 's-d']) {
      // In the second round the old state is read from the store.
      if (change !== undefined) await call('DELETE', `${MAPS}/${change}`);
      const rest = await call('GET', `${MAPS}?labelSelector=side&continue=${first.body.metadata.continue}`);
      assert.deepEqual(
        rest.body.items.map((each) => each.metadata.name),
        ['s-b', 's-c', 's-d'],
      );
    }
  });

  it('a PUT of a missing object creates the object where upstream does, with the create permission', async () => {
    const ranges = '/api/v1/namespaces/default/limitranges/put';
    const range = { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'put' } };
    const classes = '/apis/node.k8s.io/v1/runtimeclasses/put';
    const runtimeClass = {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'put' },
      handler: 'h',
    };
    const rule = { apiGroups: ['', 'node.k8s.io'], resources: ['limitranges', 'runtimeclasses'], verbs: ['update'] };
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    await call('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'putter' }, rules: [rule] } });
    await call('POST', `${rbac}/clusterrolebindings`, {
      body: {
        metadata: { name: 'putter' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'putter' },
        subjects: [{ kind: 'User', name: 'putter' }],
      },
    });
    const as = await server.user('putter');
    assert.equal((await call('PUT', ranges, { as, body: range })).code, 403);
    assert.equal((await call('PUT', classes, { as, body: runtimeClass })).code, 403);
    assert.equal((await call('PUT', ranges, { body: range })).code, 201);
    assert.equal((await call('PUT', classes, { body: runtimeClass })).code, 201);
    assert.equal((await call('PUT', ranges, { as, body: range })).code, 200);
    assert.equal((await call('PUT', `${MAPS}/not-by-put`, { body: configMap('not-by-put') })).code, 404);
  });

  it('rejects a PUT of a collection', async () => {
    assert.equal((await call('PUT', MAPS, { body: configMap('whole') })).code, 405);
    assert.equal((await call('PATCH', MAPS, { raw: '{}', type: 'application/merge-patch+json' })).code, 405);
  });

  it('lists select objects by labels and fields', async () => {
    await call('POST', PODS, {
      body: { ...pod('on-n2', { nodeName: 'n2' }), metadata: { name: 'on-n2', labels: { a: 'b' } } },
    });
    const names = async (query: string) =>
      (await call('GET', `${PODS}?${query}`)).body.items?.map((each) => each.metadata.name);
    assert.deepEqual(await names('fieldSelector=spec.nodeName%3Dn2'), ['on-n2']);
    assert.deepEqual(await names('labelSelector=a+in+(b,c)'), ['on-n2']);
    assert.deepEqual(await names('fieldSelector=metadata.name%3Don-n2'), ['on-n2']);
    assert.equal((await call('GET', `${PODS}?fieldSelector=spec.nothing%3Dx`)).code, 400);
    assert.equal((await call('GET', `${PODS}?labelSelector=a+in`)).code, 400);
  });

  it('repeated lists by label selector return the current objects after changes and deletions', async () => {
    for (let n = 0; n < 40; n++)
      await call('POST', MAPS, { body: { metadata: { name: `lot-${n}`, labels: { lot: String(n % 2) } } } });
    const names = async (selector: string) =>
      (await call('GET', `${MAPS}?labelSelector=${selector}`)).body.items?.map((each) => each.metadata.name);
    for (let round = 0; round < 2; round++) assert.equal((await names('lot%3D1'))?.length, 20);
    const type = 'application/merge-patch+json';
    await call('PATCH', `${MAPS}/lot-1`, { raw: '{"metadata":{"labels":{"lot":"2"}}}', type });
    await call('DELETE', `${MAPS}/lot-3`);
    assert.equal((await names('lot%3D1'))?.length, 18);
    assert.deepEqual(await names('lot%3D2'), ['lot-1']);
    assert.deepEqual(await names('lot+in+(1,2),lot!%3D1'), ['lot-1']);
    assert.equal((await names('lot'))?.length, 39);
  });

  it('returns objects as tables, as metadata only and as YAML', async () => {
    const as = (form: string) => ({ headers: { accept: form } });
    const rows = await call('GET', PODS, as('application/json;as=Table;v=v1;g=meta.k8s.io'));
    assert.equal(rows.body.kind, 'Table');
    assert.equal(rows.body.columnDefinitions[0]?.name, 'Name');
    assert.equal(rows.body.rows[0]?.object.kind, 'PartialObjectMetadata');
    const partial = await call('GET', PODS, as('application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'));
    assert.equal(partial.body.kind, 'PartialObjectMetadataList');
    assert.equal(partial.body.items[0]?.spec, undefined);
    const yaml = await call('GET', `${MAPS}/a`, as('application/yaml'));
    assert.match(yaml.text, /^apiVersion: v1\nkind: ConfigMap\n/);
    assert.equal((await call('GET', `${MAPS}/a`, as('text/html'))).code, 406);
  });

  it('drops managedFields of an object that exceeds the size limit only because of managedFields, except for an apply', async () => {
    const data = Object.fromEntries(Array.from({ length: 9000 }, (_, at) => [`${'k'.repeat(80)}-${at}`, 'A']));
    const created = await call('POST', MAPS, { body: configMap('very-large', data) });
    assert.equal(created.code, 201);
    assert.equal(created.body.metadata.managedFields, undefined);
    assert.equal((await call('POST', MAPS, { body: configMap('grows', { a: '1' }) })).code, 201);
    const put = await call('PUT', `${MAPS}/grows`, { body: configMap('grows', data) });
    assert.equal(put.code, 200);
    assert.equal(put.body.metadata.managedFields, undefined);
    const apply = { raw: JSON.stringify(configMap('grows')), type: 'application/apply-patch+yaml' };
    assert.equal((await call('PATCH', `${MAPS}/grows?fieldManager=a`, apply)).code, 413);
  });

  it('accepts an applied configuration in YAML flow style', async () => {
    const raw = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "braces",}, "data": {"a": "1",},}';
    const options = { raw, type: 'application/apply-patch+yaml' };
    assert.equal((await call('PATCH', `${MAPS}/braces?fieldManager=a`, options)).code, 201);
    assert.equal((await call('PATCH', `${MAPS}/braces`, { raw, type: 'application/merge-patch+json' })).code, 400);
  });

  it('drops the namespace in the metadata of cluster-scoped objects', async () => {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'spaceless', namespace: 'default' } };
    const created = await call('POST', '/api/v1/nodes', { body });
    assert.equal(created.code, 201);
    const put = await call('PUT', '/api/v1/nodes/spaceless', { body });
    assert.equal(put.code, 200);
    for (const { metadata } of [created.body, put.body]) assert.ok(!('namespace' in metadata));
  });

  it('rejects unsupported methods on streaming subresources, and reviews with a name', async () => {
    assert.equal((await call('PUT', `${PODS}/a/exec`)).code, 405);
    assert.equal((await call('POST', `${PODS}/a/log`)).code, 405);
    assert.equal((await call('GET', '/api/v1/namespaces/default/bindings/a')).code, 404);
    assert.equal((await call('GET', '/api/v1/namespaces/default/bindings')).code, 405);
  });

  it('treats a namespace without a phase as active', async () => {
    assert.equal((await call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'no-phase' } } })).code, 201);
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'no-phase' }, status: {} };
    assert.equal((await call('PUT', '/api/v1/namespaces/no-phase/status', { body })).code, 200);
  });

  it('accepts YAML and compressed bodies, and rejects bodies that are too large before parsing', async () => {
    const yaml = await call('POST', MAPS, {
      raw: 'metadata: {name: from-yaml}\ndata: {a: "1"}\n',
      type: 'application/yaml',
    });
    assert.equal(yaml.code, 201);
    const zipped = await call('POST', MAPS, {
      raw: gzipSync(JSON.stringify(configMap('from-gzip'))),
      headers: { 'content-encoding': 'gzip' },
    });
    assert.equal(zipped.code, 201);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20));
    assert.equal((await call('POST', MAPS, { raw: bomb, headers: { 'content-encoding': 'gzip' } })).code, 413);
    const large = Buffer.alloc(3 * 1024 * 1024 + 1, 0x20);
    assert.equal((await call('POST', MAPS, { raw: large }).catch(() => ({ code: 413 }))).code, 413);
    assert.equal((await call('POST', MAPS, { raw: '['.repeat(100_000) })).code, 400);
    const operations = JSON.stringify(
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'ConfigMap' })),
    );
    assert.equal(
      (await call('PATCH', `${MAPS}/a`, { raw: operations, type: 'application/json-patch+json' })).code,
      413,
    );
  });

  it('compresses large responses if the client accepts it', async () => {
    for (const name of ['z-1', 'z-2']) {
      await call('POST', MAPS, {
        body: { metadata: { name, labels: { big: 'yes' } }, data: { t: 'x'.repeat(200_000) } },
      });
    }
    for (const path of [`${MAPS}/z-1`, `${MAPS}?labelSelector=big`]) {
      const plain = await call('GET', path);
      const zipped = await new Promise<Buffer>((resolve, reject) => {
        const chunks: Buffer[] = [];
        const settings = {
          host: '127.0.0.1',
          port: server.port,
          path,
          agent: false,
          headers: { 'accept-encoding': 'gzip' },
        };
        request(
          { ...settings, ca: server.ca.certPem, cert: server.admin.certPem, key: server.admin.keyPem },
          (response) => {
            assert.equal(response.headers['content-encoding'], 'gzip');
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.on('end', () => resolve(Buffer.concat(chunks)));
          },
        )
          .on('error', reject)
          .end();
      });
      assert.ok(zipped.length < 20_000);
      assert.equal(gunzipSync(zipped).toString(), plain.text);
    }
  });

  it('serves the service range as a ready ServiceCIDR, and validates other ServiceCIDRs', async () => {
    const range = await call('GET', `${RANGES}/kubernetes`);
    assert.equal(range.code, 200, range.text);
    assert.deepEqual(range.body.spec, { cidrs: ['172.30.0.0/16'] });
    const [{ lastTransitionTime, ...ready }] = range.body.status['conditions'] as [Record<string, unknown>];
    assert.match(String(lastTransitionTime), /^\d{4}-.*Z$/);
    assert.deepEqual(ready, {
      type: 'Ready',
      status: 'True',
      reason: '',
      message: 'Kubernetes default Service CIDR is ready',
    });
    const post = async (cidrs: string[]) => {
      const { code, body } = await call('POST', RANGES, { body: { metadata: { name: 'more' }, spec: { cidrs } } });
      return code === 201 ? '' : body.message.replace(/^.* is invalid: /, '');
    };
    assert.match(await post(['10.1.0.1/16']), /^spec.cidrs\[0\]: .*must not have bits set beyond the prefix length$/);
    assert.match(await post(['10.1.0.0/16', '10.2.0.0/16']), /^spec.cidrs: .*no more than one IP for each IP family/);
    assert.equal(await post(['10.1.0.0/16']), '');
    const type = 'application/merge-patch+json';
    const patch = async (cidrs: string[]) =>
      (await call('PATCH', `${RANGES}/more`, { body: { spec: { cidrs } }, type })).code;
    assert.equal(await patch(['10.3.0.0/16']), 422);
    assert.equal(await patch(['10.1.0.0/16', 'fd00::/108']), 200);
    assert.equal(await patch(['10.1.0.0/16']), 422);
    for (const name of ['10.1.2', 'fd00::0:1']) {
      const body = { metadata: { name }, spec: { parentRef: { resource: 'services', name: 'x' } } };
      assert.equal((await call('POST', ADDRESSES, { body })).code, 422, name);
    }
    const table = await call('GET', ADDRESSES, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    });
    assert.deepEqual(
      table.body.rows.find(({ cells }) => cells[0] === '172.30.0.1')?.cells[1],
      'services/default/kubernetes',
    );
  });

  it('rejects device selectors that do not compile', async () => {
    const post = async (expression: string) => {
      const body = { metadata: { generateName: 'c-' }, spec: { selectors: [{ cel: { expression } }] } };
      const { code, body: answer } = await call('POST', '/apis/resource.k8s.io/v1/deviceclasses', { body });
      return code === 201 ? '' : answer.message.replace(/^.* is invalid: /s, '');
    };
    assert.equal(await post("device.attributes['gpu.example.com'].model == 'a' && device.driver != ''"), '');
    assert.equal(await post("device.capacity['gpu.example.com'].memory.compareTo(quantity('1Gi')) >= 0"), '');
    const all = (inner: string) => `device.attributes.all(a, device.attributes[a].all(b, ${inner}))`;
    assert.equal(await post(all("device.attributes[a][b] != 'x'")), '');
    assert.equal(
      await post(all(all("device.attributes[a][b] != 'x'"))),
      'spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit',
    );
    assert.match(await post('device.nothing'), /^spec\.selectors\[0\]\.cel\.expression: .*undefined field 'nothing'/s);
    assert.match(await post('device.driver'), /must evaluate to bool or the unknown type, not string$/);
    assert.match(
      await post(`'${'x'.repeat(10 * 1024)}' == device.driver`),
      /Too long: may not be more than 10240 bytes$/,
    );
  });

  it('allocates and releases addresses and ports of services', async () => {
    const service = (name: string, spec: object) => ({ metadata: { name }, spec: { ports: [{ port: 80 }], ...spec } });
    const path = '/api/v1/namespaces/default/services';
    const fixed = await call('POST', path, {
      body: service('fixed', { clusterIP: '172.30.9.9', type: 'NodePort', ports: [{ port: 80, nodePort: 31000 }] }),
    });
    assert.equal(fixed.code, 201, fixed.text);
    assert.equal((await call('POST', path, { body: service('same', { clusterIP: '172.30.9.9' }) })).code, 422);
    assert.equal(
      (await call('POST', path, { body: service('port', { type: 'NodePort', ports: [{ port: 1, nodePort: 31000 }] }) }))
        .code,
      422,
    );
    assert.equal((await call('POST', path, { body: service('outside', { clusterIP: '10.0.0.1' }) })).code, 422);
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        call('POST', path, { body: service(`s${index}`, { type: 'NodePort' }) }),
      ),
    );
    const addresses = new Set(many.map((each) => each.body.spec['clusterIP']));
    assert.equal(addresses.size, 20);
    const keys = async () =>
      (await server.store.range('/registry/ipaddresses/', '/registry/ipaddresses0')).kvs.map((each) => each.key);
    assert.ok((await keys()).includes('/registry/ipaddresses/172.30.9.9'));
    const object = await call('GET', `${ADDRESSES}/172.30.9.9`);
    assert.deepEqual(object.body.spec, { parentRef: { resource: 'services', namespace: 'default', name: 'fixed' } });
    assert.match(object.body.metadata.uid, /^[0-9a-f-]{36}$/);
    assert.equal((await call('DELETE', `${ADDRESSES}/172.30.9.9`)).code, 200);
    // Deleting the IPAddress object neither releases the service's address nor prevents the deletion of the service.
    assert.equal((await call('POST', path, { body: service('thief', { clusterIP: '172.30.9.9' }) })).code, 422);
    await call('DELETE', `${path}/fixed`);
    assert.ok(!(await keys()).includes('/registry/ipaddresses/172.30.9.9'));
    assert.equal((await call('POST', path, { body: service('again', { clusterIP: '172.30.9.9' }) })).code, 201);
    const reserved = {
      metadata: { name: '172.30.9.10' },
      spec: { parentRef: { group: 'example.com', resource: 'leases', name: 'x' } },
    };
    assert.equal((await call('POST', ADDRESSES, { body: reserved })).code, 201);
    const refused = await call('POST', path, { body: service('reserved', { clusterIP: '172.30.9.10' }) });
    assert.equal(refused.code, 422, refused.text);
    assert.match(refused.body.message, /172\.30\.9\.10: provided IP is already allocated/);
    const headless = await call('POST', path, { body: service('headless', { clusterIP: 'None' }) });
    assert.equal(headless.body.spec['clusterIP'], 'None');
  });

  it('binds a pod only once', async () => {
    await call('POST', PODS, { body: pod('tobind') });
    const bind = (node: string) =>
      call('POST', `${PODS}/tobind/binding`, {
        body: { metadata: { name: 'tobind' }, target: { kind: 'Node', name: node } },
      });
    assert.equal((await bind('n1')).code, 201);
    assert.equal((await call('GET', `${PODS}/tobind`)).body.spec['nodeName'], 'n1');
    assert.equal((await bind('n2')).code, 409);
  });

  it('an empty managedFields list in an update removes all managedFields', async () => {
    const owned = configMap('shared-out', { key: 'value' });
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const made = await call('PATCH', `${MAPS}/shared-out?fieldManager=m`, { body: owned, headers });
    assert.equal(made.body.metadata.managedFields?.length, 1, made.text);
    const body = { ...owned, metadata: { ...owned.metadata, managedFields: [], labels: { a: 'b' } } };
    assert.equal((await call('PUT', `${MAPS}/shared-out`, { body })).body.metadata.managedFields, undefined);
  });

  it('stores pod security policies, and warns that they are not enforced', async () => {
    const path = '/apis/policy/v1beta1/podsecuritypolicies';
    const any = { rule: 'RunAsAny' };
    const spec = { seLinux: any, runAsUser: any, supplementalGroups: any, fsGroup: any, volumes: ['*'] };
    const made = await call('POST', path, { body: { metadata: { name: 'restricted' }, spec } });
    assert.equal(made.code, 201, made.text);
    assert.match(
      made.headers['warning'] as string,
      /policy\/v1beta1 PodSecurityPolicy is deprecated in v1.21\+, unavailable in v1.25\+".*not enforced/,
    );
    assert.deepEqual(made.body.spec, { ...spec, allowPrivilegeEscalation: true });
    assert.equal((await call('DELETE', `${path}/restricted`)).code, 200);
  });

  it('deletes collections by selector', async () => {
    for (const name of ['c-1', 'c-2']) await call('POST', MAPS, { body: { metadata: { name, labels: { col: 'x' } } } });
    const gone = await call('DELETE', `${MAPS}?labelSelector=col%3Dx`);
    assert.equal(gone.body.items.length, 2);
    assert.equal((await call('GET', `${MAPS}?labelSelector=col%3Dx`)).body.items.length, 0);
    assert.equal((await call('GET', `${MAPS}/a`)).code, 200);
  });

  it('rejects writes on a full disk with the fix in the message, and recovers by itself', {
    skip: process.env[STORE_VARIABLE] === undefined ? false : 'only the memory store is full when asked to be',
  }, async () => {
    server.store.setFull(true);
    try {
      const refused = await call('POST', MAPS, { body: configMap('full') });
      assert.equal(refused.code, 503);
      assert.match(refused.body.message, /free space under the store's data directory/);
      assert.equal((await call('GET', `${MAPS}/a`)).code, 200);
    } finally {
      server.store.setFull(false);
    }
    assert.equal((await call('POST', MAPS, { body: configMap('full') })).code, 201);
  });
});
