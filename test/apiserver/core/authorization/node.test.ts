import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolume, Pod } from '../../../../src/api/generated/core/v1.ts';
import {
  createNodeAuthorizer,
  nodeNameOf,
  type ResourceAction,
} from '../../../../src/apiserver/core/authorization/index.ts';
import { Choices } from './generators.ts';

const node = (name: string) => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] });

function action(verb: string, what: string, where = '', name = ''): ResourceAction {
  const [path = '', group = ''] = what.split('@');
  const [resource = '', subresource = ''] = path.split('/');
  return { verb, group, resource, subresource, namespace: where, name };
}

const pod: Pod = {
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    nodeName: 'n1',
    serviceAccountName: 'robot',
    imagePullSecrets: [{ name: 'pull' }],
    initContainers: [
      { name: 'i', env: [{ name: 'E', valueFrom: { secretKeyRef: { name: 'init-secret', key: 'k' } } }] },
    ],
    containers: [
      {
        name: 'c',
        envFrom: [{ configMapRef: { name: 'env-map' } }, { secretRef: { name: 'env-secret' } }],
        env: [{ name: 'E', valueFrom: { configMapKeyRef: { name: 'key-map', key: 'k' } } }],
      },
    ],
    volumes: [
      { name: 'a', secret: { secretName: 'vol-secret' } },
      { name: 'b', configMap: { name: 'vol-map' } },
      { name: 'c', projected: { sources: [{ secret: { name: 'proj-secret' } }, { configMap: { name: 'proj-map' } }] } },
      { name: 'd', persistentVolumeClaim: { claimName: 'claim' } },
      { name: 'scratch', ephemeral: {} },
      { name: 'e', csi: { driver: 'd', nodePublishSecretRef: { name: 'csi-secret' } } },
    ],
  },
};

const volume: PersistentVolume = {
  metadata: { name: 'pv1' },
  spec: {
    claimRef: { namespace: 'shop', name: 'claim' },
    csi: {
      driver: 'd',
      volumeHandle: 'h',
      nodeStageSecretRef: { namespace: 'storage', name: 'stage' },
      controllerExpandSecretRef: { namespace: 'storage', name: 'controller-only' },
    },
  },
};

describe('node authorizer', () => {
  it('node authorizer has no opinion on other users', () => {
    const authorizer = createNodeAuthorizer();
    assert.equal(authorizer.authorize({ name: 'alice', groups: ['system:nodes'] }, action('get', 'nodes')), undefined);
    assert.equal(authorizer.authorize({ name: 'system:node:n1', groups: [] }, action('get', 'nodes')), undefined);
    assert.equal(nodeNameOf({ name: 'system:node:', groups: ['system:nodes'] }), undefined);
    assert.equal(nodeNameOf(node('n1')), 'n1');
  });

  it("permits reads of the objects that the node's pods refer to, by name only", () => {
    const authorizer = createNodeAuthorizer();
    const may = (who: string, ...rest: Parameters<typeof action>): boolean =>
      authorizer.authorize(node(who), action(...rest))?.allowed === true;
    const secrets = ['pull', 'init-secret', 'env-secret', 'vol-secret', 'proj-secret', 'csi-secret'];
    const maps = ['env-map', 'key-map', 'vol-map', 'proj-map'];
    assert.equal(may('n1', 'get', 'secrets', 'shop', 'pull'), false);
    authorizer.setPod(pod);
    for (const name of secrets) assert.equal(may('n1', 'get', 'secrets', 'shop', name), true, name);
    for (const name of maps) assert.equal(may('n1', 'watch', 'configmaps', 'shop', name), true, name);
    assert.equal(may('n1', 'get', 'persistentvolumeclaims', 'shop', 'claim'), true);
    assert.equal(may('n1', 'get', 'persistentvolumeclaims', 'shop', 'web-scratch'), true);
    assert.equal(may('n1', 'patch', 'persistentvolumeclaims/status', 'shop', 'claim'), true);
    assert.equal(may('n1', 'create', 'serviceaccounts/token', 'shop', 'robot'), true);

    assert.equal(may('n2', 'get', 'secrets', 'shop', 'pull'), false);
    assert.equal(may('n1', 'get', 'secrets', 'other', 'pull'), false);
    assert.equal(may('n1', 'list', 'secrets', 'shop'), false);
    assert.equal(may('n1', 'list', 'secrets'), false);
    assert.equal(may('n1', 'update', 'secrets', 'shop', 'pull'), false);
    assert.equal(may('n1', 'get', 'configmaps', 'shop', 'pull'), false);
    assert.equal(may('n1', 'create', 'serviceaccounts/token', 'shop', 'default'), false);
    assert.equal(may('n1', 'delete', 'persistentvolumeclaims', 'shop', 'claim'), false);

    authorizer.setPod({ ...pod, spec: { containers: [], nodeName: 'n1' } });
    assert.equal(may('n1', 'get', 'secrets', 'shop', 'pull'), false);
    authorizer.setPod(pod);
    authorizer.deletePod('shop', 'web');
    assert.equal(may('n1', 'get', 'secrets', 'shop', 'pull'), false);
  });

  it('permits reads of volumes and their secrets through claims, but not of controller secrets', () => {
    const authorizer = createNodeAuthorizer();
    const may = (...rest: Parameters<typeof action>): boolean =>
      authorizer.authorize(node('n1'), action(...rest))?.allowed === true;
    authorizer.setPersistentVolume(volume);
    assert.equal(may('get', 'persistentvolumes', '', 'pv1'), false);
    authorizer.setPod(pod);
    assert.equal(may('get', 'persistentvolumes', '', 'pv1'), true);
    assert.equal(may('get', 'secrets', 'storage', 'stage'), true);
    assert.equal(may('get', 'secrets', 'storage', 'controller-only'), false);
    authorizer.deletePersistentVolume('pv1');
    assert.equal(may('get', 'persistentvolumes', '', 'pv1'), false);
    assert.equal(may('get', 'secrets', 'storage', 'stage'), false);
  });

  it('permits reads of certificate secrets while an Ingress refers to the secrets', () => {
    const nodes = createNodeAuthorizer();
    const user = { name: 'system:node:n1', groups: ['system:nodes'] };
    const may = (name: string, verb = 'get'): boolean | undefined =>
      nodes.authorize(user, { verb, group: '', resource: 'secrets', subresource: '', namespace: 'a', name })?.allowed;
    const ingress = (name: string) => ({ metadata: { name, namespace: 'a' }, spec: { tls: [{ secretName: 'tls' }] } });
    assert.equal(may('tls'), false);
    nodes.setIngress(ingress('one'));
    nodes.setIngress(ingress('two'));
    nodes.setIngress(ingress('two'));
    assert.equal(may('tls'), true);
    assert.equal(may('other'), false);
    assert.equal(may('', 'list'), false);
    nodes.deleteIngress('a', 'one');
    assert.equal(may('tls'), true);
    nodes.deleteIngress('a', 'two');
    assert.equal(may('tls'), false);
  });

  it('ignores references in mirror pods, because nodes can write mirror pods', () => {
    const authorizer = createNodeAuthorizer();
    const mirror = { ...pod, metadata: { ...pod.metadata, annotations: { 'kubernetes.io/config.mirror': 'hash' } } };
    authorizer.setPod(mirror);
    assert.equal(authorizer.authorize(node('n1'), action('get', 'secrets', 'shop', 'pull'))?.allowed, false);
    assert.equal(authorizer.authorize(node('n1'), action('get', 'pods', 'shop', 'web'))?.allowed, true);
  });

  const table: readonly (readonly [boolean, ...Parameters<typeof action>])[] = [
    [true, 'get', 'nodes', '', 'n1'],
    [true, 'watch', 'nodes', '', 'n1'],
    [false, 'list', 'nodes'],
    [false, 'get', 'nodes', '', 'n2'],
    [true, 'create', 'nodes'],
    [true, 'patch', 'nodes/status', '', 'n1'],
    [false, 'patch', 'nodes/status', '', 'n2'],
    [false, 'update', 'nodes', '', 'n2'],
    [true, 'delete', 'nodes', '', 'n1'],
    [false, 'delete', 'nodes', '', 'n2'],
    [false, 'deletecollection', 'nodes', '', ''],
    [false, 'get', 'nodes/proxy', '', 'n1'],
    [true, 'create', 'leases@coordination.k8s.io', 'kube-node-lease'],
    [true, 'update', 'leases@coordination.k8s.io', 'kube-node-lease', 'n1'],
    [false, 'update', 'leases@coordination.k8s.io', 'kube-node-lease', 'n2'],
    [false, 'get', 'leases@coordination.k8s.io', 'kube-system', 'n1'],
    [false, 'list', 'leases@coordination.k8s.io', 'kube-node-lease'],
    [true, 'patch', 'csinodes@storage.k8s.io', '', 'n1'],
    [false, 'patch', 'csinodes@storage.k8s.io', '', 'n2'],
    [true, 'create', 'pods', 'kube-system'],
    [true, 'delete', 'pods', 'kube-system', 'x'],
    [true, 'patch', 'pods/status', 'shop', 'web'],
    [true, 'create', 'pods/eviction', 'shop', 'web'],
    [true, 'get', 'pods', 'shop', 'web'],
    [false, 'get', 'pods', 'shop', 'elsewhere'],
    [false, 'list', 'pods'],
    [false, 'update', 'pods', 'shop', 'web'],
    [false, 'create', 'pods/exec', 'shop', 'web'],
    [false, 'create', 'pods/binding', 'shop', 'web'],
    [true, 'list', 'services'],
    [false, 'create', 'services', 'shop'],
    [true, 'create', 'certificatesigningrequests@certificates.k8s.io'],
    [false, 'update', 'certificatesigningrequests/approval@certificates.k8s.io', '', 'x'],
    [true, 'create', 'subjectaccessreviews@authorization.k8s.io'],
    [true, 'create', 'events', 'shop'],
    [true, 'watch', 'runtimeclasses@node.k8s.io'],
    [false, 'list', 'deployments@apps', 'shop'],
    [false, 'get', 'constructor@__proto__', '__proto__', '__proto__'],
  ];
  for (const [allowed, ...request] of table) {
    it(`${allowed ? 'permits a node' : 'forbids a node'} ${request.join(' ')}`, () => {
      const authorizer = createNodeAuthorizer();
      authorizer.setPod(pod);
      authorizer.setPod({
        metadata: { name: 'elsewhere', namespace: 'shop' },
        spec: { containers: [], nodeName: 'n2' },
      });
      const decision = authorizer.authorize(node('n1'), action(...request));
      assert.equal(decision?.allowed, allowed, decision?.reason);
    });
  }

  it("permits reads of the resource claims of the node's pods, and writes of its own slices", () => {
    const authorizer = createNodeAuthorizer();
    const may = (requested: ResourceAction): boolean => authorizer.authorize(node('n1'), requested)?.allowed === true;
    const claim = (name: string, verb = 'get'): boolean =>
      may(action(verb, 'resourceclaims@resource.k8s.io', 'shop', name));
    const claiming = {
      metadata: { name: 'gpu', namespace: 'shop' },
      spec: {
        nodeName: 'n1',
        containers: [],
        resourceClaims: [
          { name: 'a', resourceClaimName: 'shared' },
          { name: 'b', resourceClaimTemplateName: 'template' },
          { name: 'c', resourceClaimTemplateName: 'template' },
        ],
      },
      status: {
        resourceClaimStatuses: [
          { name: 'b', resourceClaimName: 'gpu-b-1' },
          { name: 'other', resourceClaimName: 'foreign' },
        ],
        extendedResourceClaimStatus: { resourceClaimName: 'extended' },
      },
    };
    assert.equal(claim('shared'), false);
    authorizer.setPod(claiming as unknown as Pod);
    for (const name of ['shared', 'gpu-b-1', 'extended']) assert.equal(claim(name), true, name);
    assert.equal(claim('foreign'), false);
    assert.equal(claim('shared', 'list'), false);
    assert.equal(claim('shared', 'update'), false);
    authorizer.deletePod('shop', 'gpu');
    assert.equal(claim('shared'), false);

    const slices = 'resourceslices@resource.k8s.io';
    authorizer.setResourceSlice({ metadata: { name: 'own' }, spec: { nodeName: 'n1' } });
    authorizer.setResourceSlice({ metadata: { name: 'foreign' }, spec: { nodeName: 'n2' } });
    authorizer.setResourceSlice({ metadata: { name: 'nobody' } });
    for (const verb of ['get', 'update', 'patch', 'delete']) {
      assert.equal(may(action(verb, slices, '', 'own')), true, verb);
      for (const name of ['foreign', 'nobody', 'absent'])
        assert.equal(may(action(verb, slices, '', name)), false, name);
    }
    assert.equal(may(action('create', slices)), true);
    for (const verb of ['list', 'watch', 'deletecollection']) {
      const on = (name: string): ResourceAction => ({
        ...action(verb, slices),
        fields: [{ key: 'spec.nodeName', operator: 'In', values: [name] }],
      });
      assert.equal(may(on('n1')), true);
      assert.equal(may(on('n2')), false);
      assert.equal(may(action(verb, slices)), false);
    }
    authorizer.deleteResourceSlice('own');
    assert.equal(may(action('get', slices, '', 'own')), false);
  });

  it('permits a list of the pods on the node', () => {
    const authorizer = createNodeAuthorizer();
    const list = (nodeName: string) =>
      authorizer.authorize(node('n1'), {
        ...action('list', 'pods'),
        fields: [{ key: 'spec.nodeName', operator: 'In', values: [nodeName] }],
      });
    assert.equal(list('n1')?.allowed, true);
    assert.equal(list('n2')?.allowed, false);
  });

  it('counts references of pods correctly through any sequence of pod changes', () => {
    const nodes = ['n1', 'n2', ''];
    const names = ['a', 'b', 'c'];
    for (let seed = 1; seed <= 30; seed++) {
      const choices = new Choices(seed);
      const authorizer = createNodeAuthorizer();
      const present = new Map<string, Pod>();
      for (let step = 0; step < 100; step++) {
        const name = choices.one(['p', 'q', 'r', 's']);
        if (choices.chance(0.3)) {
          present.delete(name);
          authorizer.deletePod('ns', name);
        } else {
          const next: Pod = {
            metadata: { namespace: 'ns', name },
            spec: {
              nodeName: choices.one(nodes),
              containers: [],
              imagePullSecrets: choices.some(names, 0, 3).map((secret) => ({ name: secret })),
            },
          };
          present.set(name, next);
          authorizer.setPod(next);
        }
        for (const who of ['n1', 'n2']) {
          for (const secret of names) {
            const expected = [...present.values()].some(
              ({ spec }) => spec?.nodeName === who && spec.imagePullSecrets?.some((each) => each.name === secret),
            );
            const decision = authorizer.authorize(node(who), action('get', 'secrets', 'ns', secret));
            assert.equal(decision?.allowed, expected, `seed ${seed} step ${step}`);
          }
        }
      }
    }
  });
});
