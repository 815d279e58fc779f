import { helloImage } from '../images.ts';

/** A deployment that serves its greeting, with its configuration and service. */
export const deployment = (namespace: string, replicas: number, version = 'v1'): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: ${namespace}}
data: {greeting: "hello ${version}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ${namespace}, labels: {app: web}}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {version: ${version}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: ${helloImage}
        command: [/bin/sh, -c, 'mkdir -p /tmp/www; echo "$GREETING" > /tmp/www/index.html; echo "started $GREETING"; exec httpd -f -p 8080 -h /tmp/www']
        env: [{name: GREETING, valueFrom: {configMapKeyRef: {name: settings, key: greeting}}}]
        ports: [{containerPort: 8080, name: http}]
        resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {cpu: 200m, memory: 64Mi}}
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
        livenessProbe: {tcpSocket: {port: http}, periodSeconds: 5}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${namespace}}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`;

/** A deployment of two pods with a disruption budget of one. */
export const pair = (namespace: string): string => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: pair, namespace: ${namespace}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${namespace}-pair}}
  template:
    metadata: {labels: {app: ${namespace}-pair}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: idle, image: ${helloImage}, command: [/bin/sh, -c, 'trap "exit 0" TERM; while true; do sleep 0.1; done']}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: pair, namespace: ${namespace}}
spec: {minAvailable: 1, selector: {matchLabels: {app: ${namespace}-pair}}}
`;
