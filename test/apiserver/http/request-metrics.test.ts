/** Request metrics with upstream's labels, which dashboards and alerts use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startServer } from '../harness.ts';

test('counts requests by method and scope, and requests of deprecated versions', async () => {
  const server = await startServer();
  try {
    const maps = '/api/v1/namespaces/default/configmaps';
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counted' } };
    await server.call('POST', maps, { body: map });
    await server.call('PUT', `${maps}/counted`, { body: { ...map, data: { a: '1' } } });
    const got = await server.call('GET', `${maps}/counted`);
    const listed = await server.call('GET', maps);
    await server.call('POST', '/api/v1/namespaces/nowhere/configmaps', { body: map });
    await server.call('DELETE', `${maps}/counted`);
    await server.call('GET', '/apis/batch/v1beta1/cronjobs');
    const { text } = await server.call('GET', '/metrics');
    const counted = (verb: string, scope: string): boolean =>
      text.includes(
        `apiserver_request_total{component="apiserver",dry_run="",group="",resource="configmaps",scope="${scope}",subresource="",verb="${verb}",version="v1"`,
      );
    for (const verb of ['POST', 'PUT', 'GET', 'DELETE']) assert.ok(counted(verb, 'resource'), verb);
    assert.ok(counted('LIST', 'namespace'));
    assert.doesNotMatch(text, /verb="(CREATE|UPDATE)"/);
    assert.match(
      text,
      /apiserver_requested_deprecated_apis\{group="batch",removed_release="1\.25",resource="cronjobs",subresource="",version="v1beta1"\} 1/,
    );
    for (const operation of ['create', 'update', 'delete'])
      assert.match(
        text,
        new RegExp(
          `etcd_request_duration_seconds_count\\{operation="${operation}",group="",resource="configmaps"\\} [1-9]`,
        ),
      );
    assert.match(text, /etcd_requests_total\{operation="create",group="",resource="configmaps"\} [1-9]/);
    assert.match(
      text,
      /etcd_request_duration_seconds_bucket\{operation="create",group="",resource="configmaps",le="\+Inf"\} [1-9]/,
    );
    const step = 'apiserver_admission_step_admission_duration_seconds_count{operation="CREATE",rejected="false"';
    for (const type of ['admit', 'validate']) assert.ok(text.includes(`${step},type="${type}"} `), type);
    const plugin = 'apiserver_admission_controller_admission_duration_seconds';
    const served = 'operation="CREATE",rejected="false"';
    assert.match(text, new RegExp(`${plugin}_count\\{name="NamespaceLifecycle",${served},type="admit"\\} [1-9]`));
    assert.ok(
      !text.includes(`${plugin}_count{name="ServiceAccount"`),
      'has nothing to do with config maps, and is not asked',
    );
    assert.match(
      text,
      new RegExp(`${plugin}_bucket\\{name="ResourceQuota",${served},type="validate",le="2.5"\\} [1-9]`),
    );
    const refused = 'name="NamespaceLifecycle",operation="CREATE",rejected="true",type="admit"';
    assert.ok(text.includes(`${plugin}_count{${refused}} 1`), 'one was refused');
    const ofMaps = 'component="apiserver",group="",resource="configmaps"';
    const sized = (labels: string) =>
      Number(text.split(`apiserver_response_sizes_sum{${ofMaps},${labels}} `)[1]?.split('\n')[0]);
    assert.equal(sized('scope="resource",subresource="",verb="GET",version="v1"'), got.bytes.length);
    assert.equal(sized('scope="namespace",subresource="",verb="LIST",version="v1"'), listed.bytes.length);
    assert.match(
      text,
      new RegExp(`apiserver_response_sizes_bucket\\{${ofMaps},scope="resource",.*,le="1000000000"\\} 1\n`),
    );
    assert.doesNotMatch(text, /apiserver_response_sizes.*verb="(?:POST|PUT|DELETE|WATCH)"/);
    assert.match(text, /^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} [1-9]\d*$/m);
    assert.match(
      text,
      /^kubernetes_build_info\{build_date=".*",.*,git_version="v1\..*",.*,minor="\d+",platform=".*"\} 1$/m,
    );
    assert.match(text, /^apiserver_storage_objects\{resource="namespaces"\} [1-9]/m);
    assert.match(text, /^apiserver_storage_objects\{resource="deployments\.apps"\} 0$/m);
    assert.match(
      text,
      /^apiserver_resource_objects\{group="rbac\.authorization\.k8s\.io",resource="clusterroles"\} [1-9]/m,
    );
    assert.match(text, /^apiserver_storage_events_received_total\{group="",resource="configmaps"\} [1-9]/m);
    const open = Number(/^process_open_fds (\d+)$/m.exec(text)?.[1]);
    assert.ok(open > 3 && open <= Number(/^process_max_fds (\d+)$/m.exec(text)?.[1]), `${open}`);
    const started = Number(/^process_start_time_seconds (\S+)$/m.exec(text)?.[1]);
    assert.ok(started > 1e9 && started <= Date.now() / 1000, `${started}`);
  } finally {
    await server.stop();
  }
});

test('counts results of health checks by check and endpoint', async () => {
  const server = await startServer();
  try {
    await server.call('GET', '/livez');
    await server.call('GET', '/livez?exclude=etcd');
    await server.call('GET', '/readyz/ping');
    const { text, headers } = await server.call('GET', '/metrics/slis');
    assert.match(String(headers['content-type']), /^text\/plain; version=0\.0\.4/);
    assert.match(text, /^kubernetes_healthcheck\{name="etcd",type="livez"\} 1$/m);
    assert.match(text, /^kubernetes_healthchecks_total\{name="etcd",type="livez",status="success"\} 1$/m);
    assert.match(text, /^kubernetes_healthchecks_total\{name="ping",type="livez",status="success"\} 2$/m);
    assert.doesNotMatch(text, /type="readyz"/, 'single checks are not counted');
  } finally {
    await server.stop();
  }
});

test('counts response sizes after compression', async () => {
  const server = await startServer();
  try {
    const maps = '/api/v1/namespaces/default/configmaps';
    const data = { text: 'a'.repeat(300_000) };
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data };
    await server.call('POST', maps, { body: map });
    const zipped = { 'accept-encoding': 'gzip' };
    for (const [path, scope, verb] of [
      [`${maps}/large`, 'resource', 'GET'],
      [maps, 'namespace', 'LIST'],
    ] as const) {
      const { bytes, headers } = await server.call('GET', path, { headers: zipped });
      assert.equal(headers['content-encoding'], 'gzip');
      const sum = `apiserver_response_sizes_sum{component="apiserver",group="",resource="configmaps",scope="${scope}",subresource="",verb="${verb}",version="v1"} ${bytes.length}`;
      while (!(await server.call('GET', '/metrics')).text.includes(`${sum}\n`))
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await server.stop();
  }
});

test('metrics count reloads of configuration files', async () => {
  const reloads = { text: 'of now', success: { count: 2, lastMs: 1_500 }, failure: undefined };
  const server = await startServer({ identities: { current: {}, reloads } as never });
  try {
    const { text } = await server.call('GET', '/metrics');
    const prefix = 'apiserver_authentication_config_controller';
    const labels = 'apiserver_id_hash="sha256:[0-9a-f]{64}"';
    assert.match(text, new RegExp(`^${prefix}_automatic_reloads_total\\{${labels},status="success"\\} 2$`, 'm'));
    assert.match(
      text,
      new RegExp(`^${prefix}_automatic_reload_last_timestamp_seconds\\{${labels},status="success"\\} 1\\.5$`, 'm'),
    );
    assert.match(text, new RegExp(`^${prefix}_last_config_info\\{${labels},hash="sha256:[0-9a-f]{64}"\\} 1$`, 'm'));
    assert.doesNotMatch(text, /status="failure"|apiserver_authorization_config_controller/);
  } finally {
    await server.stop();
  }
});
