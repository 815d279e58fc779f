/** Objects that the recorded clients create. */

export const WEB = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: shop:1
        ports: [{containerPort: 80, name: http}]
        env: [{name: MODE, value: quiet}]
        readinessProbe: {httpGet: {port: http}}
        resources: {requests: {cpu: 100m}}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {a: "1", b: "2"}
`;

export const APPLIED = `
apiVersion: v1
kind: ConfigMap
metadata: {name: applied}
data: {a: "1", b: "2"}
`;

export const NODE = `
apiVersion: v1
kind: Node
metadata: {name: edge-1, labels: {kubernetes.io/hostname: edge-1}}
spec: {}
`;

export const DEFINITION = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rigs.lab.test}
spec:
  group: lab.test
  scope: Namespaced
  names: {plural: rigs, singular: rig, kind: Rig}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`;

export const CUSTOM = `
apiVersion: lab.test/v1
kind: Rig
metadata: {name: bench}
spec: {size: 3}
`;
