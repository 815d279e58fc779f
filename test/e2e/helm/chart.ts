/**
 * A chart with the features that charts use: definitions, lookups, capabilities, hooks, a subchart and kept objects.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { helloImage } from '../images.ts';

const HOOK_POD = `  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  containers:`;

const FILES: Readonly<Record<string, string>> = {
  'Chart.yaml': `apiVersion: v2
name: life
version: 0.1.0
appVersion: "1"
kubeVersion: ">=1.20.0-0"
dependencies: [{name: side, version: 0.1.0, condition: side.enabled}]
`,
  'values.yaml': `replicas: 1
greeting: hello
failingHook: false
slowHook: false
selector: life
unknownField: false
side: {enabled: true, note: from the parent}
`,
  'crds/gadgets.yaml': `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.life.example.com}
spec:
  group: life.example.com
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties: {size: {type: integer, minimum: 1}, colour: {type: string, default: grey}}
`,
  'charts/side/Chart.yaml': 'apiVersion: v2\nname: side\nversion: 0.1.0\n',
  'charts/side/values.yaml': 'note: its own\n',
  'charts/side/templates/note.yaml': `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-side}
data: {note: {{ .Values.note | quote }}}
`,
  'templates/NOTES.txt': `kube {{ .Capabilities.KubeVersion.Version }}
{{- range list "apps/v1" "apps/v1/Deployment" "life.example.com/v1" "nothing.example.com/v1" }}
has {{ . }} {{ $.Capabilities.APIVersions.Has . }}
{{- end }}
seen before {{ (lookup "v1" "ConfigMap" .Release.Namespace (printf "%s-settings" .Release.Name)).data | default "nothing" | toJson }}
namespaces {{ if (lookup "v1" "Namespace" "" "").items }}some{{ else }}none{{ end }}
nobody {{ lookup "v1" "Secret" "no-such-namespace" "nobody" | toJson }}
`,
  'templates/settings.yaml': `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data: {greeting: {{ .Values.greeting | quote }}, revision: {{ .Release.Revision | quote }}}
{{- if .Values.unknownField }}
dta: {a: b}
{{- end }}
`,
  'templates/kept.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-kept
  annotations: {helm.sh/resource-policy: keep}
data: {a: b}
`,
  'templates/gadget.yaml': `apiVersion: life.example.com/v1
kind: Gadget
metadata: {name: {{ .Release.Name }}}
spec: {size: {{ .Values.replicas }}}
`,
  'templates/web.yaml': `apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-web}
spec: {selector: {app: {{ .Values.selector }}}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Values.selector }}}}
  template:
    metadata: {labels: {app: {{ .Values.selector }}}, annotations: {greeting: {{ .Values.greeting }}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: ${helloImage}
        command: [/bin/sh, -c, 'mkdir -p /tmp/www; echo up > /tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www']
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
`,
  'templates/hooks.yaml': `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: {{ .Release.Revision | quote }}}
---
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-prepare
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "1", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}
spec:
${HOOK_POD}
  - {name: prepare, image: ${helloImage}, command: [/bin/sh, -c, 'sleep {{ if .Values.slowHook }}60{{ else }}0{{ end }}; exit {{ if .Values.failingHook }}3{{ else }}0{{ end }}']}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-last-words
  annotations: {helm.sh/hook: post-delete}
data: {a: b}
`,
  'templates/test.yaml': `apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-ask
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: before-hook-creation}
spec:
${HOOK_POD}
  - {name: ask, image: ${helloImage}, command: [/bin/sh, -c, 'for i in 1 2 3 4 5 6 7 8 9 10; do wget -q -O - http://$(LIFE_WEB_SERVICE_HOST)/ 2>&1 && exit 0; sleep 0.5; done; exit 1']}
`,
};

/** Writes the chart to `directory`, which is created. */
export async function writeChart(directory: string): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) {
    const file = join(directory, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}
