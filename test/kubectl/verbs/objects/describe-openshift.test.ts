/** Pages of `describe` about kinds of OpenShift, which have the content of oc's pages. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { relativeTime } from '../../../../src/kubectl/describe/openshift.ts';
import { startServer } from '../../../apiserver/harness.ts';
import { runClient } from '../../run-client.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

const OBJECTS = `
apiVersion: v1
kind: Namespace
metadata:
  name: demo
  annotations: {openshift.io/display-name: A demo, openshift.io/node-selector: disk=ssd}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: demo}
spec: {hard: {pods: "2"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: l, namespace: demo}
spec: {limits: [{type: Pod, max: {cpu: "1"}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: demo, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}, {name: other, port: 9090, protocol: TCP}]
endpoints: [{addresses: [192.0.2.1]}, {addresses: [192.0.2.2]}, {addresses: [192.0.2.3]}, {addresses: [192.0.2.4]}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: web, namespace: demo, labels: {app: web}}
spec:
  host: web.example.com
  path: /shop
  to: {kind: Service, name: web, weight: 3}
  alternateBackends: [{kind: Service, name: absent, weight: 1}]
  port: {targetPort: http}
  tls: {termination: edge, insecureEdgeTerminationPolicy: Redirect}
---
apiVersion: template.openshift.io/v1
kind: Template
metadata: {name: shop, namespace: demo, annotations: {description: Sells things.}}
message: "Use \${NAME}."
labels: {template: shop}
parameters:
- {name: NAME, displayName: Name, required: true, value: web}
- {name: KEY, description: Secret key., generate: expression, from: "[a-z]{8}"}
objects:
- {apiVersion: v1, kind: Service, metadata: {name: "\${NAME}"}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: "\${NAME}"}}
---
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: tools, namespace: demo}
spec:
  lookupPolicy: {local: true}
  tags:
  - {name: "1.9", from: {kind: DockerImage, name: "registry.example/tools:1.9"}, importPolicy: {scheduled: true}}
  - {name: "1.10", from: {kind: DockerImage, name: "registry.example/tools:1.10"}, reference: true, annotations: {description: New one., tags: "a,b"}}
  - {name: latest, from: {kind: ImageStreamTag, name: "1.9"}}
`;

const STATUS = {
  tags: [
    {
      tag: '1.9',
      items: [
        {
          created: '2026-01-01T00:00:00Z',
          dockerImageReference: `registry.example/tools@${DIGEST}`,
          image: DIGEST,
          generation: 1,
        },
      ],
    },
    {
      tag: '1.10',
      items: null,
      conditions: [
        {
          type: 'ImportSuccess',
          status: 'False',
          reason: 'NotFound',
          message: 'no image',
          lastTransitionTime: '2026-01-01T00:00:00Z',
          generation: 1,
        },
      ],
    },
  ],
};

describe('describe of kinds of OpenShift', () => {
  let server: Awaited<ReturnType<typeof startServer>>;

  before(async () => {
    server = await startServer();
    process.env['KUBECACHEDIR'] = server.directory;
    await must(['apply', '-f', '-'], OBJECTS);
  });
  after(() => server.stop());

  async function must(args: readonly string[], input?: string): Promise<string> {
    const { code, stdout, stderr } = await runClient(
      ['--kubeconfig', server.kubeconfig, '--namespace=demo', ...args],
      input,
    );
    assert.equal(code, 0, stderr);
    return stdout.replaceAll(/^(Created:\s+|\s+)[\w ]*(?: ago)/gm, '$1<age> ago');
  }

  test('shows the host, the encryption and the endpoints of a route', async () => {
    const admitted = [{ type: 'Admitted', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }];
    const ingress = [
      { host: 'web.example.com', routerName: 'default', routerCanonicalHostname: 'r.example', conditions: admitted },
    ];
    await must([
      ...['patch', 'route', 'web', '--subresource=status', '--type=merge'],
      `-p=${JSON.stringify({ status: { ingress } })}`,
    ]);
    assert.equal(
      (await must(['describe', 'route', 'web'])).replaceAll(/\.example\) .* ago/g, '.example) <age> ago'),
      `Name:             web
Namespace:        demo
Created:          <age> ago
Labels:           app=web
Annotations:      <none>
Requested Host:   web.example.com
                     exposed on router default (host r.example) <age> ago
Path:             /shop
TLS Termination:  edge
Insecure Policy:  Redirect
Endpoint Port:    http

Service:    web
Weight:     3 (75%)
Endpoints:  192.0.2.1:8080, 192.0.2.2:8080, 192.0.2.3:8080 + 1 more...

Service:    absent
Weight:     1 (25%)
Endpoints:  <none>
`,
    );
  });

  test('shows the quotas and limits of a project', async () => {
    const page = await must(['describe', 'project', 'demo']);
    assert.match(page, /^Display Name: +A demo\nDescription: +<none>\nStatus: +Active\nNode Selector: +disk=ssd$/m);
    assert.match(page, /^Quota:\n +Name: +q\n +Resource +Used +Hard\n +-+ +-+ +-+$/m);
    assert.match(page, /^Resource limits:\n +Name: +l\n +Type +Resource +Min [\s\S]+ Pod +cpu +- +1 +- +- +-$/m);
  });

  test('shows the parameters and objects of a template', async () => {
    const page = await must(['describe', 'template', 'shop']);
    assert.match(page, /^Description: +Sells things\.$/m);
    assert.match(page, /^ {4}Name: +NAME\n {4}Display Name: +Name\n {4}Required: +true\n {4}Value: +web$/m);
    assert.match(page, /^ {4}Required: +false\n {4}Generated: +expression\n {4}From: +\[a-z\]\{8\}$/m);
    assert.match(page, /^Object Labels: +template=shop\n\nMessage: +Use \$\{NAME\}\.\n\nObjects: *\n/m);
    assert.match(page, /^ {4}Service +\$\{NAME\}\n {4}Deployment\.apps +\$\{NAME\}$/m);
  });

  test('shows sources, failed imports and images of the tags of an image stream', async () => {
    await must([
      ...['patch', 'imagestream', 'tools', '--subresource=status', '--type=merge'],
      `-p=${JSON.stringify({ status: STATUS })}`,
    ]);
    const page = await must(['describe', 'is', 'tools']);
    assert.match(page, /^Image Lookup: +local=true\nUnique Images: +1\nTags: +3\n$/m);
    assert.equal(
      page.slice(page.indexOf('1.10')),
      `1.10
  reference to registry registry.example/tools:1.10

  New one.
  Tags: a, b

  ! error: Import failed (NotFound): no image
      <age> ago

1.9 (latest)
  updates automatically from registry registry.example/tools:1.9

  * registry.example/tools@${DIGEST}
      <age> ago
`,
    );
  });

  test('rounds ages as oc does', () => {
    const ages = [0.5, 1, 59, 60, 3_599, 3_600, 47 * 3_600, 48 * 3_600, 15 * 86_400, 70 * 86_400, 800 * 86_400];
    assert.deepEqual(
      ages.map((seconds) => relativeTime('2026-01-01T00:00:00Z', Date.parse('2026-01-01T00:00:00Z') + seconds * 1_000)),
      [
        ...['Less than a second', '1 second', '59 seconds', 'About a minute', '59 minutes', 'About an hour'],
        ...['47 hours', '2 days', '2 weeks', '2 months', '2 years'],
      ],
    );
  });
});
