/** Compares random operations on objects, response by response, with a model of the API. */
import { after, before, describe, it } from 'node:test';
import { until } from '../apiserver/custom-resources/crontab.ts';
import { startServer, type TestServer } from '../apiserver/harness.ts';
import { keepAlive } from './keep-alive.ts';
import { live, type Subject } from './random.ts';

const SEEDS = [1, 2, 3];
const STEPS = 120;

const CONFIG_MAPS: Subject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  resource: 'configmaps',
  root: '/api/v1',
  plural: 'configmaps',
  generations: false,
  status: false,
  unconditional: true,
  strategic: true,
  anchors: {},
  fields: {
    'data/a': ['1', '2', '3'],
    'data/b': ['1', 'line\nbreak'],
    'data/c.d': ['', 'x'],
    'binaryData/e': ['aGk=', ''],
  },
};

const RIGS: Subject = {
  apiVersion: 'lab.test/v1',
  kind: 'Rig',
  resource: 'rigs.lab.test',
  root: '/apis/lab.test/v1',
  plural: 'rigs',
  generations: true,
  status: true,
  unconditional: false,
  strategic: false,
  fields: {
    'spec/size': [1, 2, 3],
    'spec/color': ['red', 'blue'],
    'spec/deep/on': [true, false],
    'spec/list': [[1, 2], [], [3]],
    'status/phase': ['Ready', 'Broken'],
  },
  anchors: { 'spec/deep/list': [1], 'status/count': 0 },
};

const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'rigs.lab.test' },
  spec: {
    group: 'lab.test',
    scope: 'Namespaced',
    names: { plural: 'rigs', kind: 'Rig' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  size: { type: 'integer' },
                  color: { type: 'string' },
                  list: { type: 'array', items: { type: 'integer' } },
                  deep: {
                    type: 'object',
                    properties: { on: { type: 'boolean' }, list: { type: 'array', items: { type: 'integer' } } },
                  },
                },
              },
              status: { type: 'object', properties: { phase: { type: 'string' }, count: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
};

describe('random operations', () => {
  let server: TestServer;
  let connection: ReturnType<typeof keepAlive>;
  before(async () => {
    server = await startServer();
    connection = keepAlive(server);
    await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: DEFINITION });
    await until('served', async () => (await server.call('GET', '/apis/lab.test/v1/rigs')).code === 200);
  });
  after(() => {
    connection.close();
    return server.stop();
  });

  for (const subject of [CONFIG_MAPS, RIGS]) {
    for (const seed of SEEDS) {
      it(`random operations on ${subject.resource} leave the state that the model predicts, seed ${seed}`, async () => {
        const namespace = `life-${subject.plural}-${seed}`;
        await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: namespace } } });
        await live(seed, STEPS, subject, namespace, connection.send);
      });
    }
  }
});
