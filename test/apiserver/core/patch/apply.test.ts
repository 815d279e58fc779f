import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deployments } from '../../../../src/api/kinds/workloads/deployments/index.ts';
import type { JsonObject, JsonValue } from '../../../../src/api/meta/object.ts';
import { ApiError } from '../../../../src/api/meta/status.ts';
import { schemaOf } from '../../../../src/api/schema/index.ts';
import { applyServerSide, trackUpdate } from '../../../../src/apiserver/core/patch/index.ts';

const T = (second: number): string => `2026-01-01T00:00:0${second}Z`;

/** Applies and updates of one object, as an API server performs them. */
class Session {
  object: JsonObject | undefined;
  second = 0;
  readonly #schema;
  readonly #apiVersion: string;
  readonly #skeleton: JsonObject;

  constructor(apiVersion: string, kind: string, known = true, skeleton: JsonObject = {}) {
    this.#skeleton = skeleton;
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    this.#apiVersion = apiVersion;
    this.#schema = known ? schemaOf({ group, version, kind }) : undefined;
  }

  apply(manager: string, applied: JsonObject, options: { force?: boolean; subresource?: string } = {}): JsonObject {
    this.object = applyServerSide({
      live: this.object,
      applied: {
        apiVersion: this.#apiVersion,
        kind: 'K',
        ...applied,
        metadata: { name: 'x', ...(applied['metadata'] as JsonObject | undefined) },
      },
      manager,
      force: options.force ?? false,
      schema: this.#schema,
      nowIso: T(this.second),
      apiVersion: this.#apiVersion,
      ...(options.subresource === undefined
        ? { resetFields: [['status']] }
        : { subresource: options.subresource, resetFields: [['spec']] }),
    });
    return this.object;
  }

  update(manager: string, change: (object: JsonObject) => void, subresource?: string): JsonObject {
    const updated: JsonObject = structuredClone(
      this.object ?? { apiVersion: this.#apiVersion, kind: 'K', metadata: { name: 'x' } },
    );
    change(updated);
    this.object = trackUpdate({
      live: this.object,
      updated,
      manager,
      schema: this.#schema,
      nowIso: T(this.second),
      apiVersion: this.#apiVersion,
      skeleton: this.#skeleton,
      ...(subresource === undefined ? {} : { subresource }),
    });
    return this.object;
  }

  get entries(): JsonObject[] {
    return (this.at('metadata', 'managedFields') ?? []) as JsonObject[];
  }

  fields(manager: string): JsonValue | undefined {
    return this.entries.find((entry) => entry['manager'] === manager)?.['fieldsV1'];
  }

  at(...path: string[]): JsonValue | undefined {
    let value: JsonValue | undefined = this.object;
    for (const key of path) value = (value as JsonObject | undefined)?.[key];
    return value;
  }
}

function conflict(run: () => unknown): ApiError {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    assert.equal(error.httpCode, 409);
    assert.equal(error.reason, 'Conflict');
    return error;
  }
  throw new assert.AssertionError({ message: 'no conflict' });
}

const deployment = () => new Session('apps/v1', 'Deployment', true, deployments.skeleton);
const configMap = () => new Session('v1', 'ConfigMap');
const template = (...containers: JsonObject[]): JsonObject => ({ spec: { containers } });

describe('server-side apply', () => {
  it('creates an object and records the owners of its fields', () => {
    const session = deployment();
    session.apply('me', {
      metadata: { labels: { app: 'web' } },
      spec: { replicas: 2, template: template({ name: 'c', image: 'i', ports: [{ containerPort: 80 }], args: ['a'] }) },
    });
    assert.deepEqual(session.entries, [
      {
        manager: 'me',
        operation: 'Apply',
        apiVersion: 'apps/v1',
        time: T(0),
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { 'f:app': {} } },
          'f:spec': {
            'f:replicas': {},
            'f:template': {
              'f:spec': {
                'f:containers': {
                  'k:{"name":"c"}': {
                    '.': {},
                    'f:args': {},
                    'f:image': {},
                    'f:name': {},
                    'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} } },
                  },
                },
              },
            },
          },
        },
      },
    ]);
  });

  it('an update owns new structures, map keys and list items, but no defaulted fields', () => {
    const session = deployment();
    session.update('kubectl-create', (object) => {
      object['metadata'] = { name: 'x', uid: 'u', creationTimestamp: T(0), labels: { app: 'web' } };
      const strategy = { rollingUpdate: { maxSurge: 1 } };
      const container = { name: 'c', image: 'i', livenessProbe: { tcpSocket: { port: 1 } }, resources: {} };
      object['spec'] = { replicas: 1, selector: { matchLabels: {} }, strategy, template: template(container) };
      object['status'] = {};
    });
    assert.deepEqual(session.entries, [
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'apps/v1',
        time: T(0),
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
          'f:spec': {
            'f:replicas': {},
            'f:selector': {},
            'f:strategy': { 'f:rollingUpdate': { '.': {}, 'f:maxSurge': {} } },
            'f:template': {
              'f:spec': {
                'f:containers': {
                  'k:{"name":"c"}': {
                    '.': {},
                    'f:image': {},
                    'f:livenessProbe': { '.': {}, 'f:tcpSocket': { '.': {}, 'f:port': {} } },
                    'f:name': {},
                    'f:resources': {},
                  },
                },
              },
            },
          },
        },
      },
    ]);
  });

  it("a conflict with a single manager has upstream's message, and force takes the field", () => {
    const session = deployment();
    session.update('kubectl-client-side-apply', (object) => {
      object['spec'] = { replicas: 1 };
    });
    const error = conflict(() => session.apply('me', { spec: { replicas: 3 } }));
    assert.equal(
      error.message,
      'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas',
    );
    assert.deepEqual(error.details?.causes, [
      {
        reason: 'FieldManagerConflict',
        message: 'conflict with "kubectl-client-side-apply" using apps/v1',
        field: '.spec.replicas',
      },
    ]);
    session.apply('me', { spec: { replicas: 3 } }, { force: true });
    assert.equal(session.at('spec', 'replicas'), 3);
    assert.deepEqual(
      session.entries.map((entry) => entry['manager']),
      ['me'],
    );
  });

  it('an apply lists several conflicts by manager', () => {
    const session = deployment();
    session.apply('one', { spec: { replicas: 1, paused: true } });
    session.update('two', (object) => {
      object['spec'] = { ...(object['spec'] as JsonObject), minReadySeconds: 1 };
    });
    const error = conflict(() => session.apply('me', { spec: { replicas: 3, paused: false, minReadySeconds: 2 } }));
    assert.equal(
      error.message,
      'Apply failed with 3 conflicts: conflicts with "one":\n- .spec.paused\n- .spec.replicas\nconflicts with "two" using apps/v1:\n- .spec.minReadySeconds',
    );
  });

  it('two managers that apply the same value share the field, and a different value of one manager conflicts', () => {
    const session = configMap();
    session.apply('one', { data: { k: 'v' } });
    session.apply('two', { data: { k: 'v' } });
    assert.deepEqual(session.fields('one'), { 'f:data': { 'f:k': {} } });
    assert.deepEqual(session.fields('two'), { 'f:data': { 'f:k': {} } });
    assert.match(conflict(() => session.apply('one', { data: { k: 'w' } })).message, /conflict with "two": \.data\.k$/);
    session.apply('one', {});
    assert.deepEqual(session.at('data'), { k: 'v' });
    session.apply('two', {});
    assert.equal(session.at('data'), undefined);
    assert.equal(session.at('metadata', 'name'), 'x');
  });

  it('an apply removes fields that the manager has applied before and does not apply any more', () => {
    const session = deployment();
    session.apply('me', {
      metadata: { labels: { a: '1', b: '2' } },
      spec: { replicas: 1, template: template({ name: 'a', image: 'i' }, { name: 'b', image: 'i' }) },
    });
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['labels'] = { a: '1', b: '2', c: '3' };
    });
    session.apply('me', { metadata: { labels: { b: '2' } }, spec: { template: template({ name: 'b', image: 'i' }) } });
    assert.deepEqual(session.at('metadata', 'labels'), { b: '2', c: '3' });
    assert.deepEqual(session.at('spec'), { template: template({ name: 'b', image: 'i' }) });
  });

  it('removes a structure with its defaulted fields when its last owner stops applying the structure', () => {
    const session = deployment();
    session.apply('me', { spec: { replicas: 1, strategy: { rollingUpdate: { maxSurge: 1 } } } });
    // Defaults have no owner.
    const spec = session.at('spec') as JsonObject;
    spec['strategy'] = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: '25%' } };
    session.apply('me', { spec: { replicas: 1 } });
    assert.deepEqual(session.at('spec'), { replicas: 1 });
  });

  it('an apply keeps a list item that the manager omits and another manager owns', () => {
    const session = deployment();
    session.apply('me', { spec: { template: template({ name: 'a', image: 'i' }) } });
    session.apply('you', { spec: { template: template({ name: 'a', env: [{ name: 'X', value: '1' }] }) } });
    session.apply('me', { spec: {} });
    assert.deepEqual(session.at('spec'), { template: template({ name: 'a', env: [{ name: 'X', value: '1' }] }) });
  });

  it('an apply orders the applied list items as in the configuration, and keeps the position of other items', () => {
    const session = deployment();
    session.update('injector', (object) => {
      object['spec'] = { template: template({ name: 'first' }, { name: 'a' }, { name: 'side' }, { name: 'b' }) };
    });
    session.apply('me', { spec: { template: template({ name: 'b' }, { name: 'a' }, { name: 'new' }) } });
    const containers = session.at('spec', 'template', 'spec', 'containers') as JsonObject[];
    assert.deepEqual(
      containers.map(({ name }) => name),
      ['first', 'side', 'b', 'a', 'new'],
    );
  });

  it('merges atomic lists, sets and keyed lists by their list type', () => {
    const session = new Session('v1', 'Pod');
    session.apply('one', { metadata: { finalizers: ['x/a'] }, spec: { tolerations: [{ key: 'a' }] } });
    session.apply('two', { metadata: { finalizers: ['x/b'] } });
    assert.deepEqual(session.at('metadata', 'finalizers'), ['x/a', 'x/b']);
    assert.deepEqual(session.fields('two'), { 'f:metadata': { 'f:finalizers': { 'v:"x/b"': {} } } });
    assert.match(
      conflict(() => session.apply('two', { metadata: { finalizers: ['x/b'] }, spec: { tolerations: [] } })).message,
      /conflict with "one": \.spec\.tolerations$/,
    );
    session.apply('one', { spec: { tolerations: [{ key: 'b' }] } });
    assert.deepEqual(session.at('metadata', 'finalizers'), ['x/b']);
    assert.deepEqual(session.at('spec', 'tolerations'), [{ key: 'b' }]);
  });

  it('an update takes ownership of changed fields, and removes deleted fields from all managers', () => {
    const session = configMap();
    session.apply('me', { data: { a: '1', b: '2' } });
    session.second = 1;
    session.update('editor', (object) => {
      object['data'] = { a: '9', c: '3' };
    });
    assert.equal(session.fields('me'), undefined);
    assert.deepEqual(session.fields('editor'), { 'f:data': { 'f:a': {}, 'f:c': {} } });
    assert.match(conflict(() => session.apply('me', { data: { a: '1' } })).message, /"editor" using v1: \.data\.a$/);
  });

  it('an apply without changes keeps the object, including times, unchanged', () => {
    const session = deployment();
    const config = { spec: { replicas: 1, template: template({ name: 'a' }) } };
    const before = session.apply('me', config);
    session.second = 5;
    assert.deepEqual(session.apply('me', config), before);
    assert.deepEqual(
      session.update('me', () => {}),
      before,
    );
    session.apply('me', { spec: { ...config.spec, replicas: 2 } });
    assert.equal(session.entries[0]?.['time'], T(5));
  });

  it('tracks subresources separately, and records no ownership of fields that an endpoint resets', () => {
    const session = deployment();
    session.apply('me', { spec: { replicas: 1 }, status: { replicas: 7 } });
    assert.deepEqual(session.fields('me'), { 'f:spec': { 'f:replicas': {} } });
    session.update('controller', (object) => Object.assign(object, { status: { replicas: 1 } }), 'status');
    session.apply('me', { status: { readyReplicas: 1 } }, { subresource: 'status' });
    assert.deepEqual(
      session.entries.map(({ manager, operation, subresource }) => [manager, operation, subresource]),
      [
        ['me', 'Apply', undefined],
        ['me', 'Apply', 'status'],
        ['controller', 'Update', 'status'],
      ],
    );
    assert.match(
      conflict(() => session.apply('you', { status: { replicas: 3 } }, { subresource: 'status' })).message,
      /conflict with "controller" with subresource "status" using apps\/v1: \.status\.replicas$/,
    );
  });

  it('an apply conflicts with fields that existed before the first apply', () => {
    const session = configMap();
    session.object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', uid: 'u' }, data: { a: '1' } };
    assert.match(
      conflict(() => session.apply('me', { data: { a: '2' } })).message,
      /"before-first-apply" using v1: \.data\.a$/,
    );
    session.apply('me', { data: { b: '2' } });
    assert.deepEqual(session.fields('before-first-apply'), { 'f:data': { 'f:a': {} } });
    assert.equal(session.at('metadata', 'uid'), 'u');
  });

  it('lets server-side apply take over from client-side apply, except for fields changed in the meantime', () => {
    const start = (live: JsonObject): Session => {
      const session = configMap();
      session.update('kubectl-client-side-apply', (object) => {
        const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: '1', b: '1' } };
        object['metadata'] = {
          name: 'x',
          annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(applied) },
        };
        object['data'] = live;
      });
      return session;
    };
    const session = start({ a: '1', b: '1' });
    session.apply('kubectl', { data: { a: '2', b: '1' } });
    assert.equal(session.at('data', 'a'), '2');
    const annotation = session.at('metadata', 'annotations', 'kubectl.kubernetes.io/last-applied-configuration');
    assert.match(String(annotation), /"data":\{"a":"2","b":"1"\}/);

    const changed = start({ a: 'edited', b: '1' });
    const error = conflict(() => changed.apply('kubectl', { data: { a: '2', b: '2' } }));
    assert.deepEqual(
      error.details?.causes?.map(({ field }) => field),
      ['.data.a'],
    );
    conflict(() => start({ a: '1', b: '1' }).apply('someone', { data: { a: '2' } }));
  });

  it('lets clients edit or reset the managed fields', () => {
    const session = configMap();
    session.apply('me', { data: { a: '1' } });
    const kept = structuredClone(session.entries);
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['managedFields'] = 'broken';
    });
    assert.deepEqual(session.entries, kept);
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['managedFields'] = [{ ...kept[0], manager: 'renamed' }];
    });
    assert.deepEqual(
      session.entries.map(({ manager }) => manager),
      ['renamed'],
    );
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['managedFields'] = [{}];
    });
    assert.deepEqual(session.entries, []);
    assert.equal(session.at('metadata', 'managedFields'), undefined);
  });

  it('uses the last entry when a client renames several managers to the same name', () => {
    const session = configMap();
    session.apply('one', { data: { a: '1' } });
    session.apply('two', { data: { b: '2' } });
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['managedFields'] = session.entries.map((entry) => ({
        ...entry,
        manager: 'all',
      }));
    });
    assert.deepEqual(
      session.entries.map(({ manager, fieldsV1 }) => [manager, fieldsV1]),
      [['all', { 'f:data': { 'f:b': {} } }]],
    );
  });

  it('list items with the same key are owned, compared and replaced together', () => {
    const variable = (name: string, value: string) => ({ name, value });
    const withEnv = (...env: JsonObject[]): JsonObject => ({
      spec: { template: template({ name: 'c', image: 'i', env }) },
    });
    const ownedEnv = (manager: string): JsonObject | undefined => {
      let node = session.fields(manager) as JsonObject | undefined;
      for (const element of ['f:spec', 'f:template', 'f:spec', 'f:containers', 'k:{"name":"c"}', 'f:env'])
        node = node?.[element] as JsonObject | undefined;
      return node;
    };
    const env = () =>
      (session.at('spec', 'template', 'spec', 'containers') as JsonObject[]).map((container) => container['env']);
    const one = { '.': {}, 'f:name': {}, 'f:value': {} };
    const session = deployment();
    const [a, p1, p2, p3, h] = [
      variable('A', 'a'),
      variable('P', '1'),
      variable('P', '2'),
      variable('P', '3'),
      variable('H', 'h'),
    ];
    session.update('maker', (object) => Object.assign(object, withEnv(a, p1, p2)));
    assert.deepEqual(ownedEnv('maker'), { '.': {}, 'k:{"name":"A"}': one, 'k:{"name":"P"}': {} });
    session.apply('applier', withEnv(h));
    assert.deepEqual(env(), [[a, p1, p2, h]]);
    assert.deepEqual(ownedEnv('applier'), { 'k:{"name":"H"}': one });
    assert.deepEqual(ownedEnv('maker'), { '.': {}, 'k:{"name":"A"}': one, 'k:{"name":"P"}': {} });
    session.update('changer', (object) => Object.assign(object, withEnv(a, p1, p3, h)));
    assert.deepEqual(ownedEnv('maker'), { '.': {}, 'k:{"name":"A"}': one });
    assert.deepEqual(ownedEnv('changer'), { 'k:{"name":"P"}': {} });
    assert.match(
      conflict(() => session.apply('applier', withEnv(p1))).message,
      /conflict with "changer" using apps\/v1: .*env\[name="P"\]$/,
    );
    session.apply('applier', withEnv(p1), { force: true });
    assert.deepEqual(env(), [[a, p1]]);
    assert.deepEqual(ownedEnv('applier'), { 'k:{"name":"P"}': one });
    assert.equal(ownedEnv('changer'), undefined);
    session.update('changer', (object) => Object.assign(object, withEnv(a, p2, p3)));
    assert.equal(ownedEnv('applier'), undefined);
    assert.deepEqual(ownedEnv('changer'), { 'k:{"name":"P"}': {} });
  });

  it('an empty managedFields list removes all owners, and only an apply records new owners', () => {
    const session = configMap();
    session.apply('me', { data: { a: '1' }, metadata: { uid: 'u' } });
    session.update('other', (object) => {
      (object['metadata'] as JsonObject)['managedFields'] = [];
    });
    assert.deepEqual(session.entries, []);
    session.update('other', (object) => {
      object['data'] = { a: '2' };
    });
    assert.deepEqual(session.entries, []);
    session.apply('me', { data: { b: '1' } });
    assert.deepEqual(
      session.entries.map(({ manager }) => manager),
      ['me', 'before-first-apply'],
    );
  });

  it('merges the oldest update entries if managedFields has too many entries', () => {
    const session = configMap();
    for (let index = 0; index < 15; index++) {
      session.second = index % 10;
      session.update(`m${String(index).padStart(2, '0')}`, (object) => {
        object['data'] = { ...(object['data'] as JsonObject), [`k${index}`]: '1' };
      });
    }
    assert.equal(session.entries.length, 10);
    const owned = JSON.stringify(session.entries);
    for (let index = 0; index < 15; index++) assert.ok(owned.includes(`"f:k${index}"`), `k${index}`);
    assert.ok(session.fields('ancient-changes') !== undefined);
  });

  it('merges objects of unknown kinds field by field, and treats lists as atomic', () => {
    const session = new Session('example.com/v1', 'Thing', false);
    session.apply('one', { spec: { a: { b: 1 }, list: [{ name: 'x' }] } });
    session.apply('two', { spec: { a: { c: 2 } } });
    assert.deepEqual(session.at('spec'), { a: { b: 1, c: 2 }, list: [{ name: 'x' }] });
    assert.match(
      conflict(() => session.apply('two', { spec: { list: [{ name: 'y' }] } })).message,
      /conflict with "one": \.spec\.list$/,
    );
    session.apply('one', { spec: { a: { b: 1 } } });
    assert.deepEqual(session.at('spec'), { a: { b: 1, c: 2 } });
  });

  const refused: readonly (readonly [string, JsonObject, RegExp])[] = [
    [
      'an apply with an unknown field',
      { spec: { replica: 1 } },
      /\(\/x; apps\/v1, Kind=K\): \.spec\.replica: field not declared in schema$/,
    ],
    [
      'an apply with two list items of the same key',
      { spec: { template: template({ name: 'a' }, { name: 'a' }) } },
      /\.spec\.template\.spec\.containers: duplicate entries for key \[name="a"\]$/,
    ],
    [
      'an apply with a list item that is not an object',
      { spec: { template: { spec: { containers: ['a'] } } } },
      /containers: element 0: associative list with keys may not have non-map elements$/,
    ],
    [
      'an apply with a list in place of a map',
      { metadata: { labels: ['a'] } },
      /\.metadata\.labels: expected map, got &\{\[a\]\}$/,
    ],
    [
      'an apply with a string in place of a list',
      { spec: { template: { spec: { containers: 'x' } } } },
      /expected list, got &\{x\}$/,
    ],
    [
      'an apply with a map in place of a number',
      { spec: { replicas: {} } },
      /\.spec\.replicas: expected numeric \(int or float\), got map\[string\]interface \{\}$/,
    ],
    [
      'an apply with a number in place of a string',
      { metadata: { labels: { a: 1 } } },
      /\.metadata\.labels\.a: expected string, got &value\.valueUnstructured\{Value:1\}$/,
    ],
    [
      'an apply with a string in place of a boolean',
      { spec: { paused: 'x' } },
      /\.spec\.paused: expected boolean, got &\{x\}$/,
    ],
  ];
  for (const [what, applied, message] of refused) {
    it(`rejects ${what}`, () => {
      assert.throws(() => deployment().apply('me', applied), { reason: 'Unknown', httpCode: 500, message });
    });
  }

  it('an applied configuration with managedFields is rejected', () => {
    assert.throws(() => deployment().apply('me', { metadata: { managedFields: [] } }), {
      reason: 'BadRequest',
      message: 'metadata.managedFields must be nil',
    });
  });

  it('treats a missing required key of an item as empty, and leaves the error to validation', () => {
    const session = deployment();
    session.apply('me', { spec: { template: template({ image: 'a' }) } });
    assert.deepEqual(session.at('spec', 'template', 'spec', 'containers'), [{ image: 'a' }]);
  });

  it('server-side apply does not change its arguments', () => {
    const session = deployment();
    session.apply('one', { spec: { replicas: 1, template: template({ name: 'a', args: ['x'] }) } });
    const live = structuredClone(session.object);
    const applied: JsonObject = {
      apiVersion: 'apps/v1',
      kind: 'K',
      metadata: { name: 'x' },
      spec: { template: template({ name: 'a', env: [{ name: 'E' }] }) },
    };
    const facts = { manager: 'two', force: true, schema: undefined, nowIso: T(1), apiVersion: 'apps/v1' };
    const before = JSON.stringify([live, applied]);
    const result = applyServerSide({ live, applied, ...facts });
    const scribble = (value: JsonValue | undefined): void => {
      if (typeof value !== 'object' || value === null) return;
      for (const [key, each] of Object.entries(value)) if (key !== 'managedFields') scribble(each);
      if (Array.isArray(value)) value.push('scribble');
      else if (!Object.isFrozen(value)) value['scribble'] = true;
    };
    scribble(result);
    assert.equal(JSON.stringify([live, applied]), before);
  });

  it('server-side apply treats prototype names as plain data', () => {
    const session = configMap();
    session.apply('me', JSON.parse('{"data":{"__proto__":"a","constructor":"b"}}'));
    session.update('you', (object) => {
      object['data'] = JSON.parse('{"__proto__":"z","constructor":"b"}');
    });
    assert.equal(JSON.stringify(session.at('data')), '{"__proto__":"z","constructor":"b"}');
    assert.deepEqual(session.fields('me'), { 'f:data': { 'f:constructor': {} } });
    assert.deepEqual(session.fields('you'), { 'f:data': { 'f:__proto__': {} } });
    session.apply('me', {});
    assert.equal(JSON.stringify(session.at('data')), '{"__proto__":"z"}');
  });
});
