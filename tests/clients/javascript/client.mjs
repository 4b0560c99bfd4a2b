// What a JavaScript program does with a cluster: prints one JSON object with what it saw. Arguments: kubeconfig, namespace.
import * as k8s from '@kubernetes/client-node';

const [kubeconfig, namespace] = process.argv.slice(2);
const seen = {};
const config = new k8s.KubeConfig();
config.loadFromFile(kubeconfig);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const map = (name, data) => ({ metadata: { name, labels: { of: 'js' } }, data });

seen.version = (await config.makeApiClient(k8s.VersionApi).getCode()).major;
const made = await core.createNamespacedConfigMap({ namespace, body: map('one', { a: '1' }) });
seen.created = [made.metadata.name, made.data, made.metadata.creationTimestamp instanceof Date];
const read = await core.readNamespacedConfigMap({ namespace, name: 'one' });
read.data.b = '2';
seen.replaced = (await core.replaceNamespacedConfigMap({ namespace, name: 'one', body: read })).data;
try {
  await core.replaceNamespacedConfigMap({ namespace, name: 'one', body: read });
} catch (error) {
  seen.conflict = [error.code, JSON.parse(error.body).reason];
}
seen.patched = (await core.patchNamespacedConfigMap(
  { namespace, name: 'one', body: [{ op: 'remove', path: '/data/a' }] },
  k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.JsonPatch),
)).data;
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'two', namespace, labels: { of: 'js' } }, data: { c: '3' } };
const owned = await objects.patch(applied, undefined, undefined, 'js-test', true, k8s.PatchStrategy.ServerSideApply);
seen.applied = [owned.data, owned.metadata.managedFields.map((one) => [one.manager, one.operation])];
seen.listed = (await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=js' })).items.map((one) => one.metadata.name);
seen.page = (await core.listNamespacedConfigMap({ namespace, limit: 1 })).metadata._continue !== undefined;

// An informer sees what was there and what comes.
const events = [];
const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/configmaps`,
  () => core.listNamespacedConfigMap({ namespace, labelSelector: 'of=js' }), 'of=js');
const told = new Promise((resolve, reject) => {
  informer.on('error', reject);
  for (const verb of ['add', 'update', 'delete']) {
    informer.on(verb, (obj) => {
      events.push(`${verb} ${obj.metadata.name}`);
      if (verb === 'delete') resolve();
      if (verb === 'add' && obj.metadata.name === 'three') {
        core.deleteNamespacedConfigMap({ namespace, name: 'three' }).catch(reject);
      }
    });
  }
});
await informer.start();
await core.createNamespacedConfigMap({ namespace, body: map('three', {}) });
await told;
await informer.stop();
seen.events = events.sort();

// Typed kinds, status and scale, a pod that runs and its log.
const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'web', image: 'web' }] } };
const body = { metadata: { name: 'web' }, spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template } };
await apps.createNamespacedDeployment({ namespace, body });
const watch = new k8s.Watch(config);
const until = (path, done) => new Promise((resolve, reject) => {
  watch.watch(path, {}, (_verb, obj) => { if (done(obj)) resolve(obj); }, (error) => error && reject(error))
    .then((request) => { setTimeout(() => request.abort(), 240000).unref(); }, reject);
});
const ready = await until(`/apis/apps/v1/namespaces/${namespace}/deployments`, (one) => one.status?.readyReplicas === 2);
seen.ready = ready.metadata.name;
const [pod] = (await core.listNamespacedPod({ namespace, labelSelector: 'app=web' })).items;
seen.log = typeof (await core.readNamespacedPodLog({ namespace, name: pod.metadata.name }));
const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'web' });
scale.spec.replicas = 1;
seen.scaled = (await apps.replaceNamespacedDeploymentScale({ namespace, name: 'web', body: scale })).spec.replicas;
try {
  await core.createNamespacedConfigMap({ namespace, body: map('Not A Name', {}) });
} catch (error) {
  seen.invalid = [error.code, JSON.parse(error.body).details.causes[0].field];
}
await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: 'of=js' });
seen.left = (await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=js' })).items.length;
console.log(JSON.stringify(seen));
process.exit(0);
