// Submits a job to the site named by HANSE_SOCKET and waits for its end, in Node: what submit_and_wait.py does.
// HANSE_PROTO names the folder `proto` of Hanse's sources; docs/how-to/other-languages.md explains the rest.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const definition = loader.loadSync("grms/v1/job.proto", {
  includeDirs: [process.env.HANSE_PROTO ?? "proto"],
  keepCase: true,
  enums: String,
  longs: Number,
  oneofs: true,
});
const { JobService } = grpc.loadPackageDefinition(definition).grms.v1;
const site = new JobService(`unix:${process.env.HANSE_SOCKET}`, grpc.credentials.createInsecure());

function submit(request) {
  const deadline = Date.now() + 30_000;
  return new Promise((resolve, reject) => {
    // Where the answer got lost, or the site is starting, the same key asks for the same job and no second one.
    const attempt = (pause) =>
      site.Submit(request, { deadline }, (error, job) => {
        const again = error?.code === grpc.status.UNAVAILABLE && Date.now() + pause < deadline;
        if (again) setTimeout(attempt, pause, 2 * pause);
        else if (error) reject(error);
        else resolve(job);
      });
    attempt(100);
  });
}

async function ended(job_id) {
  for await (const job of site.Watch({ job_id })) {
    if (job.state === "JOB_STATE_ENDED") return job;
    console.log(`${job.job_id} ${job.state}`);
  }
  throw new Error("the site has ended the stream; ask again");
}

try {
  const job = await submit({
    idempotency_key: "example-node-1",
    name: "example",
    request: { processors: 2, requested_time_s: 60, simulated: { run_time_s: 0.5 } },
  });
  console.log(`${job.job_id} was taken`);
  const last = await ended(job.job_id);
  console.log(`${last.job_id} ${last.outcome} on ${last.executed_on}`);
  process.exitCode = last.outcome === "OUTCOME_COMPLETED" ? 0 : 1;
} catch (error) {
  // `details` is for people, `code` one of grpc.status.
  console.error(`the site refused: ${error.details ?? error.message}`);
  process.exitCode = 1;
} finally {
  site.close();
}
